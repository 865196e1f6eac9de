"""How many nodes or racks can be emptied by moving running jobs, with how few moves, and in which order?"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placeopt.arguments import checked
from placeopt.check import violations
from placeopt.errors import BadArgument, InternalFault
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Placement
from placeopt.problem import Move, Problem, State, compile_problem
from placeopt.problem.indexing import running_placement
from placeopt.problem.lost import find_lost
from placeopt.terms.rules.registry import fits
from placeopt.whatif.after_plan import only_running
from placeopt.whatif.capacity import Limits, attempt, weigh
from placeopt.whatif.domain_levels import nodes_under
from placeopt.whatif.instance_edit import Patched, asked_milli, edit_instance, without_nodes
from placeopt.whatif.records import Defrag, Freed, Relocation
from placeopt.whatif.review import plan_of

ROUND_S = 5.0
"""What one try may take at most."""
POINTS = 100
"""A front has about so many points: on large clusters several domains are emptied from one to the next."""


@checked
def defrag(
    instance: Instance,
    level: str = "node",
    *,
    exempt: Collection[str] = (),
    everyone: bool = False,
    most_moves: int | None = None,
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[Freed], None] | None = None,
) -> Defrag:
    """
    Empty one domain after the other, each time the one whose jobs are fewest and find room elsewhere.

    What is empty stays so: nothing moves there.

    Parameters
    ----------
    instance
        The cluster and what runs on it; waiting jobs are left aside.
    level
        ``node``, or a level of the network.
    exempt
        Jobs that must not be moved.
    everyone
        Whether jobs may be moved that are not marked as movable.
    most_moves
        Stop before more moves than that.
    limits
        ``time_limit_s`` is of the whole search.
    cancel
        Set it from another thread to stop with the front that is known.
    on_news
        Told of every point of the front.

    Returns
    -------
    Defrag
        The front that was found: every point is refereed, and ``at_least`` says what is proven of it. The search is
        greedy: a point may take more moves than are needed.

    Raises
    ------
    BadInput
        If there is no such level, or an exempt job does not run.

    Notes
    -----
    ``at_least``: of the jobs on a domain each counts 1 / (number of domains it is on), so the k domains with the least
    sums bound the moves of any k from below.
    """
    began, limits = time.monotonic(), limits or Limits(60.0)
    ground = _ground(instance, level, exempt, everyone=everyone)
    front: list[Freed] = []
    deadline = began + limits.time_limit_s
    chosen: list[str] = []
    open_, most = dict(ground.candidates), ground.most()
    stride = max(1, len(open_) // POINTS)

    def over() -> bool:
        return time.monotonic() > deadline or (cancel is not None and cancel.is_set())

    with Engine() as engine:
        while open_ and len(ground.free) + len(chosen) < most and not over():
            batch = _next(ground, open_, chosen, min(stride, most - len(ground.free) - len(chosen)), most_moves)
            if not batch:
                break
            left = min(ROUND_S, deadline - time.monotonic())
            moved = _try(engine, ground, [*chosen, *batch], Limits(max(left, 0.1), limits.threads, limits.seed), cancel)
            if moved is None:
                stride = max(1, len(batch) // 2)
                if len(batch) == 1:
                    del open_[batch[0]]  # with more domains gone it fits less: never tried again
                continue
            for name in batch:
                del open_[name]
            chosen += batch
            moves, ordered = _in_order(ground, moved)
            point = Freed(
                freed=len(ground.free) + len(chosen),
                domains=tuple(chosen),
                moves=moves,
                at_least=ground.least_moves(len(chosen)),
                ordered=ordered,
            )
            front.append(point)
            if on_news is not None:
                on_news(point)
    return Defrag(
        level=level,
        domains=len(ground.under),
        free_before=len(ground.free),
        front=tuple(front),
        most=most,
        moves_most=most_moves,
        exempt=len(exempt),
        all_movable=everyone,
        stuck=len(ground.under) - len(ground.free) - len(ground.candidates),
        seconds=time.monotonic() - began,
    )


@dataclass(frozen=True)
class _Ground:
    """What runs where: domains with the jobs on them, those that are free, those that may be emptied."""

    base: Instance
    under: dict[str, tuple[str, ...]]
    free: tuple[str, ...]
    candidates: dict[str, frozenset[str]]
    milli: dict[str, int]
    """GPU-milli that each job asks for."""
    capacity: dict[str, int]
    """GPUs of each domain."""
    gpus: int
    """GPUs of all nodes, those under no such domain included."""
    problem: Problem
    """The round as if nothing ran: or a rule would say that what runs must stay."""
    state: State
    """And everything in its place."""

    def jobs_on(self, domains: Collection[str]) -> frozenset[str]:
        """Return the jobs on some domains."""
        return frozenset().union(*(self.candidates[name] for name in domains))

    def gpu_milli(self, jobs: Collection[str]) -> int:
        """Return the GPU share that jobs hold together."""
        return sum(self.milli[job] for job in jobs)

    def least_moves(self, count: int) -> int:
        """Return a number of moves without which ``count`` domains more cannot be empty."""
        spans: dict[str, int] = {}
        for jobs in self.candidates.values():
            for job in jobs:
                spans[job] = spans.get(job, 0) + 1
        sums = sorted(sum((Fraction(1, spans[job]) for job in jobs), Fraction(0)) for jobs in self.candidates.values())
        return math.ceil(sum(sums[:count], Fraction(0)))

    def hopeless(self, domains: Collection[str], jobs: Collection[str]) -> bool:
        """Tell whether one of the jobs finds no room outside of the domains and of those that are free, even alone."""
        gone = {node for name in (*self.free, *domains) for node in self.under[name]}
        stays = np.array([name not in gone for name in self.problem.node_ids])
        records = {job.id: job for job in self.base.jobs if job.id in jobs}
        for job in records.values():
            room = free_capacity_of(self.state, job)
            if all(
                int(room.workers(requirement)[stays].sum()) < requirement.fewest
                for requirement in requirements_of(self.problem, job)
            ):
                return True
        return False

    def most(self) -> int:
        """Return how many domains can be empty at most: the others must hold what runs, where shares bind."""
        if self.base.policy.share_mode == "overcommit":
            return len(self.free) + len(self.candidates)
        holds = 1000 * self.gpus - self.base.running_gpu_milli
        count = 0
        for size in sorted(self.capacity[name] for name in (*self.free, *self.candidates)):
            holds -= 1000 * size
            if holds < 0:
                break
            count += 1
        return count


def _ground(instance: Instance, level: str, exempt: Collection[str], *, everyone: bool) -> _Ground:
    base = only_running(instance)
    runs = {held.job: held for held in base.running}
    missing = next((name for name in exempt if name not in runs), None)
    if missing is not None:
        raise BadArgument(f"exempt: no job {missing!r} runs")
    under = nodes_under(base, level)
    machines = {machine.id: len(machine.gpus) for machine in base.cluster.machines}
    gpus = {node.id: machines[node.machine] for node in base.cluster.nodes}
    capacity = {name: sum(gpus[node] for node in nodes) for name, nodes in under.items()}
    under = {name: nodes for name, nodes in under.items() if capacity[name]}
    at = {node: name for name, nodes in under.items() for node in nodes}
    jobs: dict[str, set[str]] = {name: set() for name in under}
    for held in base.running:
        for assignment in held.assignments:
            if assignment.node in at:
                jobs[at[assignment.node]].add(held.job)
    may = {name for name, held in runs.items() if (everyone or held.movable) and name not in exempt}
    weighed = weigh(base, lambda _: 1)
    problem, state = _standing(weighed)
    return _Ground(
        base=weighed,
        under=under,
        free=tuple(name for name, on in jobs.items() if not on),
        candidates={name: frozenset(on) for name, on in jobs.items() if on and on <= may},
        milli={job.id: asked_milli(job) for job in base.jobs},
        capacity=capacity,
        gpus=sum(gpus.values()),
        problem=problem,
        state=state,
    )


def _standing(base: Instance) -> tuple[Problem, State]:
    """Return the round as if nothing ran, and the state in which all that runs is in its place."""
    problem = compile_problem(edit_instance(base, running=()), lost=find_lost(base))
    number = {name: j for j, name in enumerate(problem.job_ids)}
    nodes = {name: n for n, name in enumerate(problem.node_ids)}
    at = {held.job: running_placement(held, problem, number[held.job], nodes) for held in base.running}
    return problem, State(problem, tuple(at.get(name) for name in problem.job_ids))


def _next(
    ground: _Ground, open_: dict[str, frozenset[str]], chosen: list[str], count: int, most_moves: int | None
) -> list[str]:
    """Return the next domains to empty, those whose jobs are fewest; takes out of ``open_`` what never can be."""
    batch: list[str] = []
    held = ground.jobs_on(chosen)
    left = dict(open_)
    while left and len(batch) < count:
        name = min(left, key=lambda one: (len(left[one] - held), ground.gpu_milli(left[one] - held), one))
        jobs = left.pop(name)
        if most_moves is not None and len(held | jobs) > most_moves:
            continue
        if ground.hopeless([*chosen, *batch, name], jobs):
            if not batch:
                del open_[name]
            continue
        batch.append(name)
        held |= jobs
    return batch


def _try(
    engine: Engine, ground: _Ground, domains: list[str], limits: Limits, cancel: threading.Event | None
) -> dict[str, Placement] | None:
    """Place the jobs of the domains elsewhere while all others stay; None if that is not found."""
    gone = [node for name in (*ground.free, *domains) for node in ground.under[name]]  # what is empty stays so
    if len(gone) == len(ground.base.cluster.nodes):
        return None
    patched = without_nodes(Patched(ground.base), gone)
    trial = attempt(engine, patched.instance, limits, cancel)
    if not trial.fits:
        return None
    displaced = set(patched.displaced)
    return {placement.job: placement for placement in trial.plan.placements if placement.job in displaced}


def _in_order(ground: _Ground, moved: dict[str, Placement]) -> tuple[tuple[Relocation, ...], bool]:
    """Put moves in an order in which each keeps the rules when its turn comes; the referee reads what they lead to."""
    base, problem = ground.base, ground.problem
    number = {name: j for j, name in enumerate(problem.job_ids)}
    nodes = {name: n for n, name in enumerate(problem.node_ids)}
    state = State(problem, ground.state.allocation())
    before = {held.job: tuple(a.node for a in held.assignments) for held in base.running}
    pending, order = list(moved), []
    while pending:
        for name in pending:
            job, place = number[name], running_placement(moved[name], problem, number[name], nodes)
            back = state.apply(Move(job, None))
            if fits(state, job, place):
                state.apply(Move(job, place))
                order.append(name)
                pending.remove(name)
                break
            state.apply(back)
        else:
            break
    ordered = not pending
    running = tuple(
        held.model_copy(update={"option": moved[held.job].option, "assignments": moved[held.job].assignments})
        if held.job in moved
        else held
        for held in base.running
    )
    after = edit_instance(base, running=running)
    broken = violations(after, plan_of(after, ()))
    if broken:
        raise InternalFault(f"after the moves the referee refuses what runs: {broken[0].message}")
    moves = tuple(
        Relocation(
            job=name,
            from_nodes=before[name],
            to_nodes=tuple(assignment.node for assignment in moved[name].assignments),
            gpu_milli=ground.milli[name],
        )
        for name in [*order, *pending]
    )
    return moves, ordered
