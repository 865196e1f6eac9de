"""Certificates of plans: proofs of what they claim, which another program can check with the round alone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from math import gcd
from typing import Literal

import numpy as np

from placeopt.certificates.master import Goal
from placeopt.certificates.node_costs import NodeCosts
from placeopt.certificates.node_values import NodeValues
from placeopt.certificates.places import Places
from placeopt.certificates.prices import PriceSearch, Relaxed, Solve
from placeopt.certificates.proof import Proof
from placeopt.certificates.records import Certificate, ConflictClaim, CostClaim, ValueClaim
from placeopt.certificates.room import Room, is_as_stated, lacks_room, room_of, units_of
from placeopt.errors import OutOfTime, Unsupported
from placeopt.linear import MAX_EXACT, LinearModel
from placeopt.model import Instance, Plan
from placeopt.problem import BundleRooms, Problem, State, open_state
from placeopt.problem.compile import compile_problem
from placeopt.solvers.pool import Worker
from placeopt.solvers.result import SolveOptions
from placeopt.terms.standing import relaxed_state

CHANGES = "proofs do not know what running jobs cost that may be changed"
TREES = "jobs are trees of groups"
TOO_LARGE = "sums of costs are too large for the relaxation"
NOT_IN_TIME = "no proof was found in the time given"


def certify(
    instance: Instance,
    plan: Plan,
    *,
    time_limit_s: float = 10.0,
    isolation: Literal["process", "thread"] = "process",
) -> Certificate:
    """
    Search proofs of what a plan claims.

    Nothing is taken from how the plan was made: proofs are searched anew after the solve, so a solve without a
    certificate costs nothing.

    Parameters
    ----------
    instance
        The round.
    plan
        A plan of it, for all its jobs.
    time_limit_s
        Seconds for the search.
    isolation
        Whether the solver of linear programs has a process of its own, as in `placeopt.solve`.

    Returns
    -------
    Certificate
        Each claim with its proof, or with the reason why it is not certified.

    Raises
    ------
    BadInput
        As `placeopt.solve` does.
    Unsupported
        As `placeopt.solve` does.
    """
    problem = compile_problem(instance, plan.policy.values)
    deadline = time.monotonic() + time_limit_s
    state = relaxed_state(open_state(problem))
    claims: list[ValueClaim | ConflictClaim | CostClaim] = []
    with Worker(("highs",), isolation) as runner:
        solve = partial(_solve, runner, deadline)
        value, *others = plan.levels
        if value.bound is not None:
            claims.append(_value_claim(state, value.bound, solve, deadline))
        claims += (
            _cost_claim(state, level.bound, plan, solve, deadline) for level in others if level.bound is not None
        )
    conflicts = {unplaced.job for unplaced in plan.unplaced if unplaced.reason == "conflict"}
    rooms = BundleRooms(state)
    claims += (_conflict_claim(rooms, job, name) for job, name in enumerate(problem.job_ids) if name in conflicts)
    return Certificate(instance=instance.name, policy=plan.policy.values, claims=tuple(claims))


def _solve(runner: Worker, deadline: float, model: LinearModel) -> Relaxed | None:
    """Solve the relaxation of a model."""
    options = SolveOptions(time_limit_s=max(deadline - time.monotonic(), 0.0), relax=True)
    solution = runner.solve("highs", model, options, deadline=deadline)
    if solution.status != "optimal":
        return None
    values, duals = solution.relaxed_values, solution.duals
    if values is None or duals is None:  # a model without rows or columns, which no solver has seen
        return Relaxed(np.zeros(model.num_variables), np.zeros(model.num_rows))
    return Relaxed(values, duals)


def _cost_claim(state: State, bound: int, plan: Plan, solve: Solve, deadline: float) -> CostClaim:
    problem, value = state.problem, plan.levels[0].objective
    claim = partial(
        CostClaim,
        claim="cost",
        bound=bound,
        value=value,
        weights={name: cost.weight for name, cost in plan.costs.items()},
    )
    if bound <= 0:
        return claim(proof="never negative")
    if why := _left_out(problem) or (CHANGES if problem.changeable else None):
        return claim(why=why)
    try:
        places = Places(state, units_of(problem))
        room = room_of(state, deadline, places)
        nodes, goal = (
            NodeCosts(room, places, deadline),
            Goal(value, max(1, min(bound, MAX_EXACT // 4 // max(1, value)))),
        )
        search = PriceSearch(room, nodes, solve, deadline, goal)
        search.begin(nodes.held(_held(plan, problem, room)))
        proof = Proof(room, search, lambda cost: cost - places.standing, deadline).prove(-bound)
    except OutOfTime:
        proof = None
    except Unsupported:
        return claim(why=TOO_LARGE)
    return claim(proof=proof, why=None if proof else NOT_IN_TIME)


def _held(plan: Plan, problem: Problem, room: Room) -> Iterator[tuple[int, Counter[tuple[int, int]]]]:
    """Return what starts on each node of a plan: its state, and by bundle and number of a job's together how often."""
    state_of = {problem.node_ids[node]: s for s, state in enumerate(room.states) for node in state.nodes}
    ways = {
        (problem.job_ids[job], way.option): way for group in room.groups for job in group.jobs for way in group.ways
    }
    held: dict[str, Counter[tuple[int, int]]] = {}
    for placed in plan.placements:
        way = ways.get((placed.job, placed.option))
        if way is None or not room.bundles[way.bundle].gpus:
            continue
        for part in placed.assignments:
            number = len(part.workers) if way.bundles > 1 else 1
            held.setdefault(part.node, Counter())[way.bundle, number] += 1
    return ((state_of[node], counts) for node, counts in held.items())


def _conflict_claim(rooms: BundleRooms, job: int, name: str) -> ConflictClaim:
    """Certify that a job has no room, if counting on nodes and in domains shows it."""
    if rooms.state.problem.trees:
        return ConflictClaim(claim="does not fit", job=name, why=TREES)
    if all(lacks_room(rooms, option) for option in rooms.state.problem.options_of(job)):
        return ConflictClaim(claim="does not fit", job=name, proof="counting")
    return ConflictClaim(claim="does not fit", job=name, why="counting on nodes and in domains does not show it")


def _value_claim(state: State, bound: int, solve: Solve, deadline: float) -> ValueClaim:
    problem = state.problem
    if why := _left_out(problem):
        return ValueClaim(claim="value", bound=bound, why=why)
    unit = unit_of_value(problem)
    try:
        room = room_of(state, deadline)
        search = PriceSearch(room, NodeValues(room), solve, deadline)
        proof = Proof(room, search, lambda value: (room.held + value) // unit * unit, deadline).prove(bound)
    except OutOfTime:
        proof = None
    return ValueClaim(claim="value", bound=bound, proof=proof, why=None if proof else NOT_IN_TIME)


def _left_out(problem: Problem) -> str | None:
    """Return what a round has that no proof knows; None if there is nothing of the kind."""
    if problem.trees:
        return TREES
    if problem.policy.flavors:
        return "queues have quotas by kind of nodes"
    if not all(is_as_stated(problem, job) for job in problem.changeable):
        return "a running job that may be changed holds what its option does not say, or what is gone"
    return None


def unit_of_value(problem: Problem) -> int:
    """Return a number that divides the value of every plan."""
    changes = problem.policy.changes
    prices = (changes.move_price, changes.preemption_price, changes.shrink_price_per_worker)
    options = [option for job in problem.given.jobs for option in job.options]
    workers = [leaf.value_per_worker for option in options for leaf in option.leaves]
    return gcd(*(prices if problem.changeable else ()), *(option.value for option in options), *workers) or 1
