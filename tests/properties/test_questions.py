"""Every question about a round in which something stands is answered, or refused by a typed error."""

from collections.abc import Callable

from hypothesis import given, settings

from helpers.live_engine import release
from placeopt import Engine, Instance, PlaceoptError, solve_in_parts, whatif
from placeopt.build import job
from placeopt.check import judge
from placeopt.explain import explain, explain_all
from strategies import odd_rounds

LIMITS = whatif.Limits(time_limit_s=0.5)


def emptied(round_: Instance) -> None:
    """Load, decide, commit, release everything, decide again: each state is one that the referee accepts."""
    with Engine(isolation="thread") as live:
        live.load(round_)
        live.commit(live.place(time_limit_s=1))
        for running in list(live.snapshot.running):
            release(live, running.job)
        after = live.place(time_limit_s=1)
        found = judge(live.snapshot, after)
        assert [*found.violations, *found.standing] == []


@settings(max_examples=max(1, settings().max_examples // 5))
@given(round_=odd_rounds())
def test_no_question_raises_anything_else(engine: Engine, round_: Instance) -> None:
    """The same round through all that can be asked about it."""
    machine, plan = round_.cluster.machines[0].id, engine.solve(round_, time_limit_s=1)
    asks: dict[str, Callable[[], object]] = {
        "explain": lambda: [explain(round_, plan, one.job, isolation="thread").view() for one in plan.unplaced],
        "explain all": lambda: explain_all(round_, plan).view(),
        "after": lambda: engine.solve(whatif.after_plan(round_, plan), time_limit_s=1),
        "fit": lambda: whatif.fit(round_, job("asked-about"), LIMITS).view(),
        "slots": lambda: whatif.slots(round_).view(),
        "fail": lambda: whatif.fail(round_, "node", limits=LIMITS).view(),
        "add": lambda: whatif.add(round_, machine, limits=LIMITS).view(),
        "compare": lambda: whatif.compare(round_, whatif.parse_variants("more=node", round_), limits=LIMITS).view(),
        "defrag": lambda: whatif.defrag(round_, limits=LIMITS).view(),
        "review": lambda: whatif.review(round_, plan, limits=LIMITS).view(),
        "parts": lambda: solve_in_parts(round_, parts=2, time_limit_s=1),
        "live cluster": lambda: emptied(round_),
    }
    for name, ask in asks.items():
        try:
            ask()
        except PlaceoptError as error:
            assert "internal" not in str(error).lower(), name  # noqa: PT017 - any other error fails the test
