# C types of `rng.py`.
cimport cython
from placeopt.search.state cimport State

@cython.locals(first=long, last=long)
cdef long draw(State s) noexcept nogil
cpdef long below(State s, long end) noexcept nogil
