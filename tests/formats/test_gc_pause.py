"""Garbage collection of long loops: in steps, and only where the program collects at all."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from placeopt.formats import gc_pause
from placeopt.formats.gc_pause import gc_in_steps


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    yield
    gc.enable()


class Ring:
    """An object that refers to itself: nothing but the collector ends it."""

    def __init__(self) -> None:
        self.me = self


def test_rings_end_in_a_step_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_pause, "STEP_S", 0.0)
    with gc_in_steps() as step:
        assert not gc.isenabled()
        ring = weakref.ref(Ring())
        assert ring() is not None
        step()
        assert ring() is None
    assert gc.isenabled()


def test_a_step_comes_once_a_second() -> None:
    with gc_in_steps() as step:
        ring = weakref.ref(Ring())
        step()
        assert ring() is not None


def test_old_rings_end_as_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has outlived a step is visited again when all objects are."""
    now = iter([0.0, *(float(second) for second in range(2, 20, 2) for _ in range(2))])
    monkeypatch.setattr(gc_pause, "monotonic", lambda: next(now))
    with gc_in_steps() as step:
        kept = Ring()
        ring = weakref.ref(kept)
        step()
        del kept
        turns = 0
        while ring() is not None:
            step()
            turns += 1
    assert turns > 1


def test_a_program_without_collection_stays_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_pause, "STEP_S", 0.0)
    gc.disable()
    with gc_in_steps() as step:
        ring = weakref.ref(Ring())
        step()
        assert ring() is not None
    assert not gc.isenabled()


def test_an_error_switches_collection_on_again() -> None:
    with pytest.raises(ZeroDivisionError), gc_in_steps():
        raise ZeroDivisionError
    assert gc.isenabled()
