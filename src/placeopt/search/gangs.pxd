# C types of `gangs.py`.
cimport cython
from placeopt.search cimport accounts, choice, costs, limits, rng, state
from placeopt.search.state cimport State

@cython.locals(entries=long, node=long, total=long, used=long)
cdef long grow(State s, long job, long option, long first, long number, long seed) noexcept nogil
@cython.locals(at=long, there=long, held=long, fits=bint, node=long, gpus=long, left=long, need=long, free=long)
cdef long shift(State s, long job, long option, long slot, long target, long workers) noexcept nogil
@cython.locals(free=long)
cdef void _look_at(State s, long job, long option, long node) noexcept nogil
@cython.locals(free=long)
cdef void _look_again(State s, long job, long option, long node) noexcept nogil
@cython.locals(chosen=long)
cdef long _cheapest(State s, long option, long first, long number, long seed, long placed, long used) noexcept nogil
cdef bint _may_join(State s, long option, long domain, long placed, long used) noexcept nogil
cdef void _add_paths(State s, long job, long node, long gpus, long per_worker, long first, long number) noexcept nogil
