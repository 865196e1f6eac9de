# C types of `annealing.py`.
from placeopt.search cimport memory, moves, rng
from placeopt.search.state cimport State

cpdef bint is_compiled() noexcept
cpdef void anneal(State s, long steps, double temperature) noexcept
cdef void _anneal(State s, long steps, double temperature) noexcept nogil
cdef void _step(State s, double temperature) noexcept nogil
cpdef bint decide(State s, long move, long value, long cost, double temperature) noexcept nogil
