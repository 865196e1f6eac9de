# C types of `costs.py`.
cimport cython
from placeopt.search cimport state
from placeopt.search.state cimport State

cdef long gap(long free, long total) noexcept nogil
@cython.locals(change=long)
cdef long gap_change(State s, long node, long gpus) noexcept nogil
@cython.locals(path=long)
cdef long path_inside(State s, long kind, long number, long gpus) noexcept nogil
@cython.locals(path=long)
cdef long path_out(State s, long kind, long number, long gpus) noexcept nogil
@cython.locals(path=long)
cdef long path_between(State s, long one, long other) noexcept nogil
@cython.locals(path=long, total=long)
cdef long path_of_entries(State s, long first, long number) noexcept nogil
@cython.locals(out=long)
cdef long widened(State s, long sets, long kind, long gpus) noexcept nogil
cdef long meeting_level(long gpus, long switch, long socket, long others) noexcept nogil
@cython.locals(felt=long)
cdef long excess_here(State s, long node, long gpus, long profile) noexcept nogil
@cython.locals(felt=long)
cdef long excess_of_entries(State s, long profile, long first, long number) noexcept nogil
cdef long cost_of_entries(State s, long job, long option, long first, long number) noexcept nogil
