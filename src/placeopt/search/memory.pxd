# C types of `memory.py`.
from placeopt.search cimport placing
from placeopt.search.state cimport State

cpdef void note(State s, long job) noexcept nogil
cpdef void undo(State s) noexcept nogil
cpdef void keep(State s) noexcept nogil
cpdef void save(State s) noexcept nogil
