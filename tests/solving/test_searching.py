"""The local search beside other stages, and in turns with them."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from helpers.solved import solve_until_worth
from made_rounds import generate
from placeopt import generators, solve
from placeopt.heuristics import GreedyResult
from placeopt.model import Plan
from placeopt.problem import State
from placeopt.search import is_compiled
from placeopt.solving import METHODS
from placeopt.terms import cost

ROUND = generators.generate("gangs", jobs=40, nodes=8, gpus=8, seed=3)
NEEDS_COMPILER = pytest.mark.skipif(not is_compiled(), reason="the search runs in its own stage only")


@dataclass(frozen=True)
class Other:
    """A stage that does something with the context of the round, and reports nothing."""

    act: Callable[[Any], None]
    name: ClassVar[str] = "other"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: Any) -> None:
        """Never."""

    def run(self, context: Any) -> Iterator[Any]:
        """Do it."""
        self.act(context)
        yield from ()


def solve_with(monkeypatch: pytest.MonkeyPatch, act: Callable[[Any], None], **options: Any) -> Plan:
    """Solve by the first plan, with which the search begins, and one more stage."""
    search = METHODS["search"]
    monkeypatch.setitem(METHODS, "other", replace(search, first=(search.first[0], Other(act)), turns=()))
    return solve(ROUND, method="other", time_limit_s=8.0, isolation="thread", **options)


@NEEDS_COMPILER
@pytest.mark.parametrize("threads", [1, 2])
def test_it_runs_while_others_wait_or_after_them(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it finds is the best plan afterwards; with one thread the stage has half of the time."""
    seen: list[float] = []

    def sleep(context: Any) -> None:
        seen.extend((context.budget.ends - time.monotonic(), context.budget.left_s))
        time.sleep(0.5)
        seen.extend((time.monotonic(), context.handover.searching.steps))

    plan = solve_with(monkeypatch, sleep, threads=threads)
    (found,) = (record for record in plan.stages if record.name == "annealing")
    assert found.outcome == "improved"
    left_s, of_stage_s, _, steps = seen
    assert (of_stage_s > 0.6 * left_s) == (threads == 2)
    assert (steps == 0) == (threads == 1)  # beside the stage; a thread's steps are counted at the end of a cycle
    assert int(found.detail.split()[0]) > max(steps, 10)


@NEEDS_COMPILER
@pytest.mark.parametrize(
    ("spec", "threads", "begins"), [("resources", 1, False), ("resources", 2, True), ("uniform", 2, False)]
)
def test_it_makes_a_plan_beside_greedy_in_large_rounds(
    spec: str, threads: int, begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a thread is free for it, and few jobs are alike, or greedy is quick; greedy's own plan is another one."""
    search, large = METHODS["search"], generate(spec, jobs=1_200, nodes=128, gpus=8, seed=3)
    begun: list[bool] = []

    def wait(context: Any) -> None:
        begun.append(context.handover.searching is not None)
        time.sleep(0.5)

    first = replace(search.first[0], heuristics=(Other(wait),))
    monkeypatch.setitem(METHODS, "other", replace(search, first=(first,), turns=()))
    plan = solve(large, method="other", time_limit_s=8.0, isolation="thread", threads=threads)
    assert begun == [begins]
    assert (len(plan.placements) > len(large.running)) == begins


@NEEDS_COMPILER
def test_its_plan_is_read_in_the_place_of_greedys_that_is_worth_much_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy that time cut short: its figures are stated, the referee does not read it, and the search goes on."""
    search, large = METHODS["search"], generate("resources", jobs=1_200, nodes=128, gpus=8, seed=3)
    seen: list[tuple[int, bool, int]] = []

    def cut(rule: Any, problem: Any, budget: Any, deadline: float) -> GreedyResult:
        time.sleep(0.5)
        return GreedyResult(State(problem).allocation(), tuple(range(problem.num_jobs)))

    def look(context: Any) -> None:
        searching = context.handover.searching
        seen.append((context.incumbent.number, searching.holds_best, searching._before))

    monkeypatch.setattr(type(search.greedy), "place", cut)
    monkeypatch.setitem(METHODS, "other", replace(search, first=(search.first[0], Other(look)), turns=()))
    plan = solve(large, method="other", time_limit_s=8.0, isolation="thread", threads=2)
    outcomes = {stage.name: (stage.outcome, stage.detail) for stage in plan.stages}
    assert outcomes["annealing"][0] == "improved"
    assert outcomes["greedy"][0] == "kept"
    assert re.search(r"value \d+, 1,\d{3} jobs not reached", outcomes["greedy"][1])
    assert seen == [(1, True, 0)]
    assert len(plan.placements) > len(large.running)


@NEEDS_COMPILER
def test_room_is_made_from_greedys_plan_whatever_the_search_has_found() -> None:
    """The search stops running jobs but shrinks none, and its plan was 5 % behind."""
    round_ = generators.generate("preempt", jobs=368, nodes=184, gpus=16, seed=566316450)
    alone = solve(round_, method="stranding", time_limit_s=60)
    plan = solve_until_worth(round_, alone.levels[0].objective)
    assert plan.shrunk or plan.preempted


@NEEDS_COMPILER
@pytest.mark.parametrize("threads", [1, 2])
def test_a_stage_may_have_all_time_and_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the search makes no steps but those before."""

    def alone(context: Any) -> None:
        searching, budget = context.handover.searching, context.budget
        searching.alone()
        steps = searching.steps
        assert budget.left_s > 0.7 * (budget.ends - time.monotonic())
        time.sleep(0.1)
        assert searching.steps == steps

    began = time.monotonic()
    solve_with(monkeypatch, alone, threads=threads)
    assert time.monotonic() - began < 6.0


@NEEDS_COMPILER
def test_it_goes_on_from_a_better_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """That others have found; its own steps still count."""

    def exchange(context: Any) -> None:
        searching = context.handover.searching
        searching.alone()
        searching.exchange()
        before, steps = searching.steps, 0
        better = type(searching)(context)
        while not better.is_better and steps < 100_000:
            better.advance(100)
            steps += 100
        better.exchange()
        assert searching.exchange() is None
        assert not searching.is_better
        searching.advance(1)
        assert searching.steps == before + 1
        assert searching._search.value + searching._changes >= context.incumbent.value

    assert solve_with(monkeypatch, exchange, threads=2).levels is not None


@NEEDS_COMPILER
def test_where_it_has_stalled_another_begins_from_another_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The better one of both goes on, and all steps count; one that is no better ends."""

    def look(context: Any) -> None:
        searching, handover = context.handover.searching, context.handover
        searching.alone()
        searching.exchange()
        other = type(searching)(context)
        while not other.is_better:
            other.advance(100)
        first = searching._search
        for start, goes_on in ((other._search.allocation(), True), (State(context.problem).allocation(), False)):
            price = cost(context.problem, start, context.weighted)
            handover.other_start, searching._search.has_stalled = SimpleNamespace(allocation=start, cost=price), True
            before = searching.steps
            searching.advance(2)
            assert (searching._search is not first, searching._other is None) == (goes_on, goes_on)
            assert searching.steps == before + 2
            assert searching.is_better == goes_on
            searching.exchange()
            first = searching._search
        ends, steps = searching._other_ends, 0
        while searching._other is not None and steps < 200_000:
            searching.advance(100)
            steps += 100
        assert steps >= ends or searching._search is not first
        assert searching.steps == before + 2 + steps

    solve_with(monkeypatch, look, threads=2)


@pytest.mark.parametrize("threads", [1, 2])
def test_it_has_no_turns_in_deterministic_mode(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock would decide how many steps it takes."""

    def look(context: Any) -> None:
        assert context.handover.searching is None
        assert ("annealing", "the search runs in its own stage only") in context.skipped

    plan = solve_with(monkeypatch, look, threads=threads, deterministic=True)
    assert "annealing" not in {record.name for record in plan.stages}


@NEEDS_COMPILER
def test_a_fault_beside_a_stage_is_that_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised where the round can record it, and the search is given up."""

    def fail(context: Any) -> None:
        searching = context.handover.searching
        searching.alone()
        monkeypatch.setattr(searching._search, "advance", lambda steps: steps // 0)
        with pytest.raises(ZeroDivisionError), searching.beside():
            time.sleep(0.1)
        assert not searching.is_better
        with searching.beside():
            time.sleep(0.1)

    solve_with(monkeypatch, fail, threads=2)


@pytest.mark.parametrize("deterministic", [True, False])
def test_an_exact_stage_begins_where_it_finds_nothing_more(*, deterministic: bool) -> None:
    """Long before the deadline, in a round in which the best plan is found soon."""
    small = generators.generate("gangs", jobs=10, nodes=2, gpus=8, seed=1)
    plan = solve(small, time_limit_s=30.0, isolation="thread", deterministic=deterministic)
    assert plan.status == "optimal"


@NEEDS_COMPILER
def test_offers_take_a_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for one that meets the bound: where the referee needs long, few plans of the search are read."""

    def look(context: Any) -> None:
        searching = context.handover.searching
        searching.alone()
        while not searching.is_better:
            searching.advance(100)
        monkeypatch.setattr(context.budget, "offer_s", 1e3)
        assert not searching.is_due
        context.budget.offer_s = 0.0
        assert searching.is_due
        context.budget.offer_s = 1e3
        monkeypatch.setattr(context.bounds, "value", searching._search.value + searching._changes)
        assert searching.is_due == (context.bounds.value > context.incumbent.value)
        monkeypatch.undo()

    solve_with(monkeypatch, look, threads=2)
