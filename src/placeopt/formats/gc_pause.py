"""Garbage collection is paused while many records are made at once."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """
    Pause cyclic garbage collection: it would walk all records again and again while they are made (half the time).

    Safe with threads: collection is switched on again by whoever found it on, at worst while another still reads.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
