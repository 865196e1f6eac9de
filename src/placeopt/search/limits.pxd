# C types of `limits.py`.
cimport cython
from placeopt.search.state cimport State

cpdef bint has_room(State s, long node, long option, long workers) noexcept nogil
@cython.locals(together=bint)
cpdef bint may_hold(State s, long node, long option) noexcept nogil
@cython.locals(bit=long, found=long, gpu=long)
cpdef long open_gpus(State s, long node, long option) noexcept nogil
@cython.locals(fits=bint, side=long)
cpdef bint load_links(State s, long option, long first, long number, long sign) noexcept nogil
