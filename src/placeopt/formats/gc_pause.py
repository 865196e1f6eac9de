"""Garbage collection is paused while many records are created, or runs in steps of a long loop that creates them."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

STEP_S = 1.0
"""Seconds between two collections of a loop in steps."""


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


@contextmanager
def gc_in_steps() -> Iterator[Callable[[], None]]:
    """
    Pause cyclic garbage collection, and yield a call that collects, for a loop to make in every turn.

    Once a second it visits what was created since; what the loop has created in all only each time it has lasted twice
    as long as the time before, since of a million records nearly all live on. What was there before is not visited,
    unless the program keeps objects of its own away from collection, which ends for all at once. Under a program
    without collection it does nothing.
    """
    if not gc.isenabled():
        yield lambda: None
        return
    began = last = monotonic()
    whole_s = 16 * STEP_S

    def step() -> None:
        nonlocal last, whole_s
        now = monotonic()
        if now - last < STEP_S:
            return
        if now - began < whole_s:
            gc.collect(1)
        else:
            gc.collect()
            whole_s = 2 * (now - began)
        last = monotonic()

    with gc_paused():
        keeps_own = gc.get_freeze_count()
        if not keeps_own:
            gc.freeze()
        try:
            yield step
        finally:
            if not keeps_own:
                gc.unfreeze()
