"""A slice of the campaign of forced endings."""

from itertools import islice

from campaigns.forced_endings import cases


def test_a_plan_after_a_forced_end_is_consistent() -> None:
    """Never optimal unless it is, never a limit that did not apply; each kind of ending once or twice."""
    assert [fault for case in islice(cases(1), 10) for fault in case.faults] == []
