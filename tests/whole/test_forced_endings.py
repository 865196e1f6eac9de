"""A slice of the campaign of forced endings."""

from itertools import islice

from campaigns.forced_endings import Tally, cases, ended, judged
from placeopt import Engine


def test_a_plan_after_a_forced_end_is_consistent() -> None:
    """Never optimal unless it is, never a limit that did not apply; two tries of each kind."""
    faults = []
    with Engine() as process, Engine(isolation="thread") as thread:
        for case in islice(cases(10, 1, {}), 10):
            plan, seconds, cancelled = ended(process if case.isolation == "process" else thread, case)
            found = judged(case, plan, seconds, process, [Tally()], cancelled=cancelled)
            faults += [f"{case}: {what}" for what in found]
    assert faults == []
