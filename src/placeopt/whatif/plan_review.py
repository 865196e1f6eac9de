"""Review of a given placement: broken rules, distance from the best plan, and the most useful single moves."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from placeopt.arguments import checked
from placeopt.check import violations
from placeopt.deadline import Deadline
from placeopt.edits.answers import UNCERTIFIED
from placeopt.explain import explain
from placeopt.feasibility.fit import best_fit
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan
from placeopt.model.base import Id, Name, Record
from placeopt.model.plan import Cost, Level
from placeopt.problem import Move, State, compile_problem
from placeopt.readable import plural
from placeopt.solving.audit import allocation_of
from placeopt.terms.objective import Weighted, cost_delta, raw_costs, value, weighted_costs
from placeopt.view import Chart, Column, Figure, Table, View
from placeopt.whatif.round_solving import Limits, solve_round

MOVES_SHARE = 1 / 3
"""Part of the time that single moves may take."""
EXPLAIN_S = 5.0
SHOWN = 100


class CostComparison(Record):
    """A raw cost of a plan and of the best plan found; ``weight`` is the cost level's increase per unit."""

    name: Name
    unit: Name
    weight: int
    raw: int
    best_raw: int


class SingleMove(Record):
    """
    A change of one job while all others stay: ``place`` a waiting one, or ``move`` one to a better placement.

    ``nodes``: workers by node. ``gain_cost`` is None where it was not computed.
    """

    job: Id
    kind: Literal["place", "move"]
    nodes: dict[Id, int]
    gain_value: int
    gain_cost: int | None


class Review(Record):
    """The review of a placement; unless ``valid``, it holds only the first hundred of ``count`` ``violations``."""

    valid: bool
    violations: tuple[str, ...] = ()
    count: int = 0
    value: int | None = None
    best_value: int | None = None
    value_bound: int | None = None
    cost: int | None = None
    best_cost: int | None = None
    """Of the best plan found, which may cost more where its value is higher."""
    cost_bound: int | None = None
    terms: tuple[CostComparison, ...] = ()
    moves: tuple[SingleMove, ...] = ()
    jobs_tried: int = 0
    all_tried: bool = True
    """Whether every waiting job, and every placed one that costs anything, was tried."""
    seconds: float = 0.0

    @property
    def value_gap(self) -> float | None:
        """Relative distance of the plan from the bound on value; None without a bound."""
        return _gap(self.value, self.value_bound)

    def view(self) -> View:
        """Return broken rules, or the distance from the best plan, costs by term, and the moves that help most."""
        seconds = Figure(name="seconds", value=self.seconds, unit="s")
        if not self.valid:
            rules = Table(
                name="Broken rules", columns=(Column(name="rule"),), rows=tuple((text,) for text in self.violations)
            )
            broken = Figure(name="violations", value=self.count, better="less")
            title = f"breaks rules: {plural(self.count, 'violation')}"
            return View(title=title, verdict="bad", figures=(broken, seconds), tables=(rules,))
        # costs of plans of different value do not compare
        cost_gap = _gap(self.cost, self.cost_bound) if self.value == self.best_value else None
        rows = [("value", self.value, self.best_value, self.value_bound, self.value_gap)]
        if self.cost is not None:
            rows.append(("cost", self.cost, self.best_cost, self.cost_bound, cost_gap))
        tried = f"{plural(self.jobs_tried, 'job')} tried" + ("" if self.all_tried else ", then the time was over")
        terms = [
            (one.name, one.raw, one.best_raw, one.unit, one.weight * (one.raw - one.best_raw)) for one in self.terms
        ]
        moves = [
            (
                move.job,
                move.kind,
                ", ".join(node if n == 1 else f"{node} x {n}" for node, n in move.nodes.items()),
                move.gain_value,
                move.gain_cost,
            )
            for move in self.moves
        ]
        return View(
            title="keeps every rule",
            verdict="good",
            proof=f"no plan has a value above the bound; {UNCERTIFIED}",
            figures=(
                Figure(name="value from the bound", value=self.value_gap, unit="fraction", better="less"),
                Figure(name="cost from the bound", value=cost_gap, unit="fraction", better="less"),
                seconds,
            ),
            notes=(f"moves of single jobs: {tried}" + ("" if moves else "; none helps"),),
            tables=(
                Table(name="Levels", columns=LEVELS, rows=tuple(rows)),
                Table(name="Costs", columns=TERMS, rows=tuple(terms), note="raw scores; the difference is weighted"),
                Table(
                    name="Moves that help most",
                    columns=MOVES,
                    rows=tuple(moves),
                    note="each alone, all other jobs stay",
                ),
            ),
            chart=Chart(kind="bars", table="Costs", x="term", y=("this plan", "best found")) if terms else None,
        )


def _gap(value: int | None, bound: int | None) -> float | None:
    return None if value is None or bound is None else abs(bound - value) / max(1, abs(value))


PLANS = (Column(name="this plan"), Column(name="best found"))
LEVELS = (
    Column(name="level"),
    *PLANS,
    Column(name="bound"),
    Column(name="from the bound", unit="fraction", better="less"),
)
TERMS = (Column(name="term"), *PLANS, Column(name="unit"), Column(name="difference", better="less"))
MOVES = (
    Column(name="job"),
    Column(name="move"),
    Column(name="to"),
    Column(name="value gained", better="more"),
    Column(name="cost saved", better="more"),
)


@checked
def review(
    instance: Instance,
    plan: Plan,
    *,
    moves: int = 5,
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
) -> Review:
    """
    Check a plan, compare it with the proven best of its round, and find the most useful single moves.

    Parameters
    ----------
    instance, plan
        The round and the placement; objective and costs that the plan states are ignored. `plan_of` makes a plan.
    moves
        Maximum number of moves.
    limits
        ``time_limit_s`` applies to the whole review: a third of it is for single moves.
    cancel
        Set it from another thread to stop with what is known.

    Returns
    -------
    Review
        ``violations`` alone if it breaks rules. Otherwise its value, that of the best plan found and the proven bound;
        the costs of both plans, term by term; and moves of single jobs while all others stay: a placement for a waiting
        job, or a better one for a job that this round has placed.
    """
    limits = limits or Limits()
    clock = Deadline(limits.time_limit_s, cancel)
    broken = violations(instance, plan)
    if broken:
        messages = tuple(f"{violation.rule}: {violation.message}" for violation in broken[:SHOWN])
        return Review(valid=False, violations=messages, count=len(broken), seconds=clock.spent_s)
    policy = plan.policy.values
    problem = compile_problem(instance, policy)
    allocation = allocation_of(plan, problem)
    weighted = weighted_costs(problem)
    with Engine(policy) as engine:
        of_round = replace(limits, time_limit_s=(1 - MOVES_SHARE) * limits.time_limit_s)
        best = solve_round(engine, instance, of_round, clock, previous=plan)
    levels = {level.name: level for level in best.levels}
    mine = value(problem, allocation)
    terms = tuple(
        CostComparison(
            name=w.cost.name,
            unit=w.cost.unit,
            weight=w.weight,
            raw=raw,
            best_raw=best.costs[w.cost.name].raw,
        )
        for w, raw in zip(weighted, raw_costs(problem, allocation, weighted), strict=True)
    )
    restated = _restated(plan, mine, terms, weighted)
    helpful, tried, all_tried = _moves(instance, restated, State(problem, allocation), weighted, clock)
    cost = levels.get("cost")
    return Review(
        valid=True,
        value=mine,
        best_value=levels["value"].objective,
        value_bound=levels["value"].bound,
        cost=sum(term.weight * term.raw for term in terms) if weighted else None,
        best_cost=None if cost is None else cost.objective,
        cost_bound=None if cost is None else cost.bound,
        terms=terms,
        moves=helpful[:moves],
        jobs_tried=tried,
        all_tried=all_tried,
        seconds=clock.spent_s,
    )


def _restated(plan: Plan, worth: int, terms: Sequence[CostComparison], weighted: Sequence[Weighted]) -> Plan:
    """Return the plan with its actual objective and costs in place of the stated ones."""
    levels = [Level(name="value", sense="max", objective=worth, bound=None)]
    if weighted:
        total = sum(term.weight * term.raw for term in terms)
        levels.append(Level(name="cost", sense="min", objective=total, bound=None))
    costs = {
        term.name: Cost(raw=term.raw, weight=w.weight, worst=w.worst, unit=w.cost.unit)
        for term, w in zip(terms, weighted, strict=True)
    }
    return plan.model_copy(update={"levels": tuple(levels), "costs": costs})


def _moves(
    instance: Instance,
    plan: Plan,
    state: State,
    weighted: tuple[Weighted, ...],
    clock: Deadline,
) -> tuple[tuple[SingleMove, ...], int, bool]:
    """Return moves of single jobs, best first, the number of jobs tried, and whether all that may move were tried."""
    problem = state.problem
    number = {name: j for j, name in enumerate(problem.job_ids)}
    records = {job.id: job for job in instance.jobs}
    moves: list[SingleMove] = []
    tried, complete = 0, True
    for waiting in plan.unplaced:
        if clock.is_set():
            complete = False
            break
        tried += 1
        job = records[waiting.job]
        place = best_fit(free_capacity_of(state, job), requirements_of(problem, job), clock)
        if place is not None and place.worth > 0:
            nodes = {problem.node_ids[node]: workers for node, workers in sorted(place.nodes.items())}
            moves.append(SingleMove(job=job.id, kind="place", nodes=nodes, gain_value=place.worth, gain_cost=None))
    runs = {held.job for held in instance.running}
    placed = [placement.job for placement in plan.placements if placement.job not in runs]
    shares = {name: -cost_delta(state, Move(number[name], None), weighted) for name in placed} if weighted else {}
    for name in sorted(shares, key=lambda name: (-shares[name], name)):
        if shares[name] <= 0:
            break  # a job that costs nothing cannot cost less
        if clock.is_set():
            complete = False
            break
        tried += 1
        left = max(0.05, min(EXPLAIN_S, clock.left_s))
        best = explain(instance, plan, name, time_limit_s=left, cancel=clock).best
        if best is not None and best.spot is not None and (best.gain_value > 0 or best.gain_cost > 0):
            gains = {"gain_value": best.gain_value, "gain_cost": best.gain_cost}
            moves.append(SingleMove(job=name, kind="move", nodes=dict(Counter(best.spot.nodes)), **gains))
    moves.sort(key=lambda move: (-move.gain_value, -(move.gain_cost or 0), move.job))
    return tuple(moves), tried, complete
