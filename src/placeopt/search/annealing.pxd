# C types of `annealing.py`.
cimport cython
from placeopt.search cimport memory, moves, rng
from placeopt.search.state cimport State

cpdef bint is_compiled() noexcept
cpdef long anneal(State s, long steps, double heat, double cooling) noexcept
@cython.locals(taken=long)
cdef long _anneal(State s, long steps, double heat, double cooling) noexcept nogil
@cython.locals(changes=long)
cdef void _step(State s, double temperature) noexcept nogil
cpdef bint decide(State s, long move, long value, long cost, long changes, double temperature) noexcept nogil
cdef bint _is_worse(State s, long value, long cost, long changes, double temperature) noexcept nogil
