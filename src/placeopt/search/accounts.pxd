# C types of `accounts.py`.
cimport cython
from placeopt.search.state cimport State

cdef long account_of(State s, long amount, long option, long node) noexcept nogil
@cython.locals(account=long, before=long, more=long)
cdef void take(State s, long option, long node, long workers, long first) noexcept nogil
@cython.locals(account=long, kept=long, more=long, taken=long)
cpdef bint have_room(State s, long option, long node, long workers, long first, long end) noexcept nogil
