# C types of `home.py`.
cimport cython
from placeopt.search cimport accounts, limits
from placeopt.search.state cimport State

cdef bint is_home(State s, long job) noexcept nogil
cdef void count(State s, long job, long sign) noexcept nogil
@cython.locals(fits=bint)
cdef long find_room(State s, long job) noexcept nogil
