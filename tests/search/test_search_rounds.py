"""Rounds with all that the search has differences of: after every step each number is what its definition says."""

from collections import Counter
from collections.abc import Callable

import pytest

from helpers.search_checks import Checks
from placeopt.model import Instance
from placeopt.problem import change_of, compile_problem, keeps_limits
from placeopt.search import LocalSearch, what_is_judged, what_is_missing
from strategies.choice import Choice, seeded
from strategies.search_rounds import make_changing_round, make_gangs_round, make_search_round

ROUNDS, STEPS = 24, 30


@pytest.mark.parametrize("make", [make_search_round, make_changing_round, make_gangs_round])
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_every_step_leaves_what_definitions_say(seed: int, make: Callable[[Choice], Instance]) -> None:
    """Value, cost, all that is free or taken, lists, limits, and the best plan, which the referee accepts."""
    checks = Checks(compile_problem(make(seeded(f"step {seed}"))), seed)
    assert what_is_missing(checks.problem, checks.weighted) is None
    assert what_is_judged(checks.problem, checks.weighted) is None
    search = LocalSearch(checks.problem, checks.before, checks.weighted, seed=seed)
    for _ in range(STEPS):
        search.advance(1)
        assert list(checks.faults(search)) == []
    assert list(checks.lawless(search)) == []


def test_running_jobs_are_changed_as_they_may() -> None:
    """All kinds of changes come up, and each within the limits of jobs and policy."""
    seen = Counter[str]()
    for seed in range(ROUNDS):
        checks = Checks(compile_problem(make_changing_round(seeded(f"change {seed}"))), seed)
        problem = checks.problem
        search = LocalSearch(problem, checks.before, checks.weighted, seed=seed)
        for _ in range(STEPS):
            search.advance(10)
            assert list(checks.faults(search)) == []
            best = search.allocation()
            assert keeps_limits(problem, best)
            seen.update(change_of(problem, job, best[job]) for job in problem.changeable)
        assert list(checks.lawless(search)) == []
    assert seen.keys() == {"kept", "moved", "preempted"}


def test_rounds_have_accounts_of_all_kinds() -> None:
    """Of queues and of places, some of them below others, some that keep what they do not lend."""
    seen = set()
    for seed in range(ROUNDS):
        checks = Checks(compile_problem(make_search_round(seeded(f"step {seed}"))), seed)
        s = LocalSearch(checks.problem, checks.before, checks.weighted, seed=seed).state
        seen |= {"of queues"} if s.amounts_anywhere else set()
        seen |= {"of places"} if s.amounts > s.amounts_anywhere else set()
        for account in range(len(s.account_most) - 1):  # the last one stands for none
            seen |= {"below others"} if s.account_above[account] >= 0 else set()
            seen |= {"keeping"} if s.account_kept[account] else set()
    assert seen == {"of queues", "of places", "below others", "keeping"}
