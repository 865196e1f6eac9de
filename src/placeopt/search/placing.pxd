# C types of `placing.py`.
cimport cython
from placeopt.search cimport accounts, costs, home, limits, state
from placeopt.search.state cimport State

cpdef void place(State s, long job, long option) noexcept nogil
@cython.locals(gaps=long)
cpdef void take_away(State s, long job) noexcept nogil
@cython.locals(gpu=long)
cdef void _load_gpus(State s, long node, long gpus, long option, long sign) noexcept nogil
@cython.locals(bit=long, found=long, gpu=long)
cdef long _without_jobs(State s, long node, long gpus) noexcept nogil
cdef void _count_idle(State s, long node, long gpus, long sign) noexcept nogil
