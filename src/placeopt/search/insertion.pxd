# C types of `insertion.py`.
cimport cython
from placeopt.search cimport accounts, choice, gangs, home, limits, placing, rng, state
from placeopt.search.state cimport State

@cython.locals(entries=long)
cdef bint insert(State s, long job, long first, long number) noexcept nogil
cdef void put(State s, long job, long option, long first, long entries) noexcept nogil
@cython.locals(at=long, free=long, seen=long)
cdef void _try_nodes(State s, long job, long option, long first, long number) noexcept nogil
cdef bint _is_better(State s, long option, long cost) noexcept nogil
cdef void _try_gang(State s, long job, long option, long first, long number, long seed) noexcept nogil
cdef void _copy(State s, long source, long target, long number) noexcept nogil
