"""Garbage collection is paused while many records are created."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """
    Pause cyclic garbage collection: it would traverse all records repeatedly while they are created (half the time).

    What was created goes to the oldest generation without being looked through: nearly all of it lives on, and the
    next full collection visits it anyway. Not where a program keeps objects of its own away from collection.

    Safe with threads: the caller that found collection on switches it on again, at worst while another still reads.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
