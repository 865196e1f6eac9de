"""A limit of memory for a solve in this process, and for each program that it starts."""

import contextlib
import resource
from collections.abc import Iterator

MIB = 1024 * 1024
THREAD_MIB = 64 + 16
"""MiB of address space that a thread reserves without using the memory: glibc's arena, and a stack."""


@contextlib.contextmanager
def memory_limit(limit_mib: int | None, threads: int) -> Iterator[None]:
    """Let the process grow by so much and no more; allocations beyond it fail with MemoryError or end the process."""
    if limit_mib is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = _address_space() + (limit_mib + threads * THREAD_MIB) * MIB
    if hard != resource.RLIM_INFINITY:
        allowed = min(allowed, hard)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int:
    """Bytes of address space in use."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()
