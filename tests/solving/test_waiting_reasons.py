"""What a plan says of jobs that wait, held against every placement there is."""

import time
from dataclasses import replace

import numpy as np
import pytest

from helpers.brute_force import placements, without_minimal_utilities
from helpers.small_rounds import random_round
from placeopt.build import instance, job, machine, node, running
from placeopt.model import Domain, Instance, Policy, Split, Unplaced, Weights
from placeopt.model.plan import UnplacedReason
from placeopt.problem import Placement, Problem, State, compile_problem
from placeopt.solving import SolveParams
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.stage import run_stages
from placeopt.solving.stages.first_plan import MakeRoom
from placeopt.solving.stages.greedy import Greedy
from placeopt.solving.waiting_reasons import reasons
from placeopt.terms.rules import fits

NO_COST = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))


def heuristic_round(of: Instance, seconds: float = 60.0) -> SolveContext:
    """A round that greedy alone has worked on."""
    now = time.monotonic()
    budget = Budget(SolveParams(time_limit_s=seconds), started=now, deadline=now + seconds)
    context = SolveContext(compile_problem(of), budget, greedy=GreedyRule("stranding", "fcfs"))
    run_stages(context, (Greedy(), MakeRoom()))
    return context


def why(context: SolveContext) -> dict[int, Unplaced]:
    return reasons(context, State(context.problem, context.incumbent.allocation))


def said(context: SolveContext) -> dict[str, UnplacedReason]:
    return {unplaced.job: unplaced.reason for unplaced in why(context).values()}


def lopsided(*, held: bool = False, wanted: int = 4, value: int = 9) -> Instance:
    """A rack of one GPU and one of three; ``wide`` asks for 4 workers in 2 racks, and so has to lie 1 + 3."""
    nodes = [node(f"n{i}", "one", domain="small" if i == 0 else "large") for i in range(4)]
    wide = job("wide", workers=wanted, value=value, splits=(Split(level="rack", domains=2),), arrival_ms=1)
    jobs, runs = [wide], []
    if held:
        jobs.append(job("held"))
        runs.append(running(jobs[1], [("n0", [0])]))
    return instance(
        nodes,
        jobs,
        machines=[machine("one", gpus=1)],
        domains=[Domain(id="small"), Domain(id="large")],
        running=runs,
        policy=NO_COST,
    )


class TestWhatGreedyMisses:
    """It divides workers evenly over racks; 1 + 3 is a way that it does not try."""

    def test_a_job_that_fits_is_not_reached(self) -> None:
        """Nothing else is there at all."""
        context = heuristic_round(lopsided())
        found = why(context)[0]
        assert found.reason == "not_reached"
        assert found.detail == "fits on node 'n0' and 3 more; the search did not get to it"

    def test_worth_nothing_is_outvoted_by_that(self) -> None:
        """Placing it would not raise the value."""
        assert said(heuristic_round(lopsided(value=0))) == {"wide": "outvoted"}

    def test_a_conflict_is_proven(self) -> None:
        """The small rack is held by a job that stays: no way at all is left."""
        found = why(heuristic_round(lopsided(held=True, wanted=3)))[0]
        assert found.reason == "conflict"
        assert "3 places for its 3 parts, but no distribution over them that it allows" in found.detail

    def test_without_time_nothing_is_claimed(self) -> None:
        """Neither that it fits nor that it does not."""
        context = heuristic_round(lopsided())
        context.budget = replace(context.budget, params=SolveParams(time_limit_s=0.0))
        found = why(context)[0]
        assert found.reason == "not_reached"
        assert "no time was left to tell" in found.detail


@pytest.mark.parametrize("seed", range(700_000, 700_080, 10))
def test_conflict_and_not_reached_are_exact(seed: int) -> None:
    """Against all placements: beside the running jobs that must stay, and beside the plan."""
    wrong = []
    for number in range(seed, seed + 10):
        rng = np.random.default_rng(number)
        context = heuristic_round(random_round(rng, changes=number % 3 == 0))
        problem = context.problem
        plan, room = State(problem), State(without_minimal_utilities(problem))  # with and without minimal utilities
        for state in (plan, room):
            state.load(context.incumbent.allocation)
        for waiting, reason in said(context).items():
            j = problem.job_ids.index(waiting)
            if j in problem.running:
                continue
            alone = list(placements(problem, j))
            beside = [p for p in alone if fits(room, j, p)]
            allowed = _allowed(problem, beside, [p for p in beside if fits(plan, j, p)], alone)
            if reason not in allowed:
                wrong.append(f"seed {number}, {waiting}: {reason}, expected one of {sorted(allowed)}")
    assert wrong == []


def _allowed(
    problem: Problem, room: list[Placement], reaching: list[Placement], alone: list[Placement]
) -> set[UnplacedReason]:
    """``room`` beside the plan, ``reaching`` of it with all minimal utilities, ``alone`` beside what must stay."""
    worth = max((int(problem.options.value[p.option]) for p in reaching), default=0)
    if len(reaching) < len(room):  # greedy may have found none of those that reach them
        return {"postponed", "not_reached" if worth else "outvoted"} if reaching else {"postponed"}
    if reaching:
        return {"not_reached"} if worth else {"outvoted"}
    return {"policy", "outvoted"} if alone else {"policy", "conflict"}
