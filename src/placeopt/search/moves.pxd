# C types of `moves.py`.
cimport cython
from placeopt.search cimport gangs, home, insertion, limits, memory, placing, rng, state
from placeopt.search.state cimport State

@cython.locals(one=long, other=long)
cpdef long draw(State s) noexcept nogil
cdef void change(State s, long move) noexcept nogil
cdef long _any(State s) noexcept nogil
@cython.locals(first=long, refills=bint)
cpdef long ruin(State s, long move) noexcept nogil
cpdef void recreate(State s, long job) noexcept nogil
cdef void _confine(State s) noexcept nogil
cdef void _add_candidate(State s, long node) noexcept nogil
cdef void _remove(State s, long job) noexcept nogil
@cython.locals(job=long, is_away=bint, slot=long, gpu=long)
cdef void _one_job(State s) noexcept nogil
cdef void _two_jobs(State s) noexcept nogil
cdef void _gpus(State s) noexcept nogil
cdef void _nodes(State s) noexcept nogil
cdef void _refill(State s) noexcept nogil
cdef void _empty(State s, long node, long quarters) noexcept nogil
@cython.locals(found=long)
cdef long _for_one_that_waits(State s) noexcept nogil
@cython.locals(source=long, target=long, slot=long, there=long, level=long)
cdef long _workers(State s) noexcept nogil
@cython.locals(gpu=long)
cdef long _make_room(State s, long node, long option, long workers) noexcept nogil
cdef void _clear(State s, long node, long gpu) noexcept nogil
cdef long _near(State s, long node) noexcept nogil
cdef long _jobs_to_place(State s, long many, long first) noexcept nogil
cdef void _want(State s, long job) noexcept nogil
@cython.locals(at=long, shaken=double, key=double)
cdef void _sort(State s, long jobs, long first, long rule) noexcept nogil
@cython.locals(rent=double)
cdef double _rent(State s, long job, long option) noexcept nogil
