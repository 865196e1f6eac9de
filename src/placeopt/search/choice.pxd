# C types of `choice.py`.
cimport cython
from placeopt.search cimport costs, state
from placeopt.search.state cimport State

cdef long choose(State s, long job, long node, long free, long number, long held) noexcept nogil
@cython.locals(cost=long)
cdef long cost_of_choice(State s, long job, long node, long gpus, long held, long best) noexcept nogil
cdef bint _is_first(State s, long kind, long gpus, long alike) noexcept nogil
@cython.locals(bit=long, chosen=long, first=long, more=long)
cdef long _grow(State s, long job, long node, long free, long number, long held) noexcept nogil
