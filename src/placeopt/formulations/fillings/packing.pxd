# C types of `packing.py`.
cimport cython

cdef class Packing:
    cdef public long items
    cdef public long amounts
    cdef public long gpus
    cdef public long[::1] pays
    cdef public long[::1] wide
    cdef public long[::1] milli
    cdef public long[::1] most
    cdef public long[::1] weight
    cdef public long[::1] need
    cdef public long[::1] free
    cdef public long[::1] left
    cdef public long best
    cdef public long open
    cdef public long copies
    cdef public long steps
    cdef public long most_steps
    cdef public object check_time
    cdef public long look
    cdef public long[::1] number
    cdef public list found
    cdef public long[::1] held
    cdef public long[::1] parts
    cdef public long[::1] listed
    cdef public long[::1] fits
    cdef public long[::1] begins
    cdef public long[::1] ends

@cython.locals(copies=long, i=long, r=long, without=long, least=long, need=long)
cdef long _copies_at_most(Packing s) noexcept
@cython.locals(i=long)
cpdef fill(Packing s, long room)
@cython.locals(begin=long, end=long, at=long, to=long, weight=long, pays=long, bound=long, item=long)
cdef long _add(Packing s, long paid, long room) except -1 nogil
@cython.locals(to=long, at=long, item=long, fits=long, r=long, need=long)
cdef void _list(Packing s, long copies, long begin, long end) noexcept nogil
@cython.locals(before=long, after=long, g=long, outcome=long, r=long)
cdef bint _put(Packing s, long item, long bound) noexcept nogil
@cython.locals(r=long)
cdef void _take_away(Packing s, long item) noexcept nogil
@cython.locals(share=long, first=long, g=long)
cdef bint _take_tightest(Packing s, long at, long item) noexcept nogil
@cython.locals(g=long, left=long, other=long)
cdef void _sort(Packing s, long at) noexcept nogil
@cython.locals(g=long, k=long, item=long, j=long, outcome=long)
cdef long _repack(Packing s, long at) noexcept nogil
@cython.locals(share=long, outcome=long, g=long, left=long, same=bint, other=long)
cdef long _pack(Packing s, long at, long part, long wide, long first) noexcept nogil
