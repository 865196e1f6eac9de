"""The collector of cycles rests during a block, and is as it was after it, whatever ends the block."""

import gc

import pytest

from placeopt.collector import collector_paused


@collector_paused()
def _fail_while_it_rests() -> None:
    with collector_paused():
        pass
    raise ValueError("it rests" if not gc.isenabled() else "it does not")


def test_it_rests_during_the_block_and_goes_on_after_a_fault() -> None:
    with pytest.raises(ValueError, match="it rests"):
        _fail_while_it_rests()
    assert gc.isenabled()


def test_a_collector_that_the_caller_has_switched_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
