"""Nodes or racks that can be emptied by moving running jobs: number of moves and their order."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Collection
from fractions import Fraction
from itertools import accumulate

import numpy as np

from placeopt.arguments import checked
from placeopt.check import violations
from placeopt.deadline import Deadline
from placeopt.edits import displaced, edit_instance, truth, unread_in
from placeopt.edits.hardware_steps import without_nodes
from placeopt.edits.levels import nodes_under
from placeopt.errors import BadInput, InternalFault
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Placement
from placeopt.problem import Move, State, compile_problem
from placeopt.problem.hardware import find_lost
from placeopt.problem.running import placed_in
from placeopt.terms.rules import fits
from placeopt.whatif.answers import Defrag, EmptiedDomains, Relocation
from placeopt.whatif.from_running import only_running
from placeopt.whatif.plan_review import plan_of
from placeopt.whatif.round_solving import Limits, attempt, placing_only

ROUND_S = 5.0
"""Time limit of one try."""
POINTS = 100
"""Approximate number of points of a front: on large clusters, several domains are emptied between two points."""


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
    on_news: Callable[[EmptiedDomains], None] | None = None,
) -> Defrag:
    """
    Empty one domain after the other, each time the one with the fewest jobs that all fit elsewhere.

    Empty domains stay empty: no job moves there.

    Parameters
    ----------
    instance
        The cluster and its running jobs; waiting jobs are ignored.
    level
        ``node``, or a level of the network.
    exempt
        Jobs that must not be moved.
    everyone
        Whether jobs may be moved that are not marked as movable; those with groups never are.
    most_moves
        The largest number of moves.
    limits
        ``time_limit_s`` applies to the whole search.
    cancel
        Set it from another thread to stop with the front known by then.
    on_news
        Called with every point of the front.

    Returns
    -------
    Defrag
        The front that was found: the referee has checked every point, and ``at_least`` is the proven minimum of moves.
        The search is greedy, so a point may take more moves than needed.

    Raises
    ------
    BadInput
        If there is no such level, or an exempt job does not run.

    Notes
    -----
    ``at_least``: of the jobs on a domain each counts 1 / (number of domains it is on), so the k domains with the least
    sums bound the moves of any k from below.
    """
    limits = limits or Limits(60.0)
    clock = Deadline(limits.time_limit_s, cancel)
    unread = unread_in(instance, waiting=False, moved=())
    occupation = _Occupation(instance, level, (*exempt, *unread.kept), everyone=everyone)
    front: list[EmptiedDomains] = []
    chosen: list[str] = []
    open_, most = dict(occupation.candidates), occupation.most()
    stride = max(1, len(open_) // POINTS)
    with Engine() as engine:
        while open_ and len(occupation.free) + len(chosen) < most and not clock.is_set():
            count = min(stride, most - len(occupation.free) - len(chosen))
            batch = _next(occupation, open_, chosen, count, most_moves, clock)
            if not batch:
                break
            of_round = Limits(ROUND_S, limits.threads, limits.seed)
            moved = _try(engine, occupation, [*chosen, *batch], of_round, clock)
            if moved is None:
                stride = max(1, len(batch) // 2)
                if len(batch) == 1:
                    del open_[batch[0]]  # with more domains emptied it fits even less: not tried again
                continue
            for name in batch:
                del open_[name]
            chosen += batch
            moves, ordered = _in_order(occupation, moved)
            point = EmptiedDomains(
                freed=len(occupation.free) + len(chosen),
                domains=tuple(chosen),
                moves=moves,
                at_least=occupation.least_moves(len(chosen)),
                ordered=ordered,
            )
            front.append(point)
            if on_news is not None:
                on_news(point)
    answer = Defrag(
        level=level,
        domains=len(occupation.under),
        free_before=len(occupation.free),
        front=tuple(front),
        most=most,
        moves_most=most_moves,
        exempt=len(exempt),
        all_movable=everyone,
        stuck=len(occupation.under) - len(occupation.free) - len(occupation.candidates),
        seconds=clock.spent_s,
    )

    def proven(of: _Occupation) -> object:
        return of.most(), [of.least_moves(point.freed - len(occupation.free)) for point in front]

    of, names = truth(
        unread,
        lambda: proven(occupation) == proven(_Occupation(unread.freest(instance), level, exempt, everyone=everyone)),
    )
    return answer.model_copy(update={"of": of, "unread": names})


class _Occupation:
    """
    The domains of a level with their running jobs: empty ones, and those that may be emptied.

    Empty domains are ``free``; ``candidates`` have the jobs on each domain all of which may move. ``problem`` is the
    round without running jobs but those with groups, since a rule would keep those where they are, and ``state`` has
    all running jobs placed.
    """

    def __init__(self, instance: Instance, level: str, exempt: Collection[str], *, everyone: bool) -> None:
        base = only_running(instance)
        runs = {held.job: held for held in base.running}
        missing = next((name for name in exempt if name not in runs), None)
        if missing is not None:
            raise BadInput(f"exempt: job {missing!r} is not running")
        gpus = base.cluster.gpus_by_node
        self._gpus = sum(gpus.values())  # of all nodes, including nodes under no such domain
        under = nodes_under(base, level)
        self._capacity = {name: sum(gpus[node] for node in nodes) for name, nodes in under.items()}
        self.under = {name: nodes for name, nodes in under.items() if self._capacity[name]}
        at = {node: name for name, nodes in self.under.items() for node in nodes}
        on: dict[str, set[str]] = {name: set() for name in self.under}
        for held in base.running:
            for name in {at[part.node] for part in held.assignments if part.node in at}:
                on[name].add(held.job)
        grouped = {job.id for job in base.jobs if any(option.groups for option in job.options)}
        may = {name for name, held in runs.items() if everyone or held.movable} - {*exempt, *grouped}
        self.free = tuple(name for name, jobs in on.items() if not jobs)
        self.candidates = {name: frozenset(jobs) for name, jobs in on.items() if jobs and jobs <= may}
        self.milli = {job.id: job.gpu_milli for job in base.jobs}
        self.base = placing_only(base, lambda job: int(job.id not in grouped))
        stay = tuple(held for held in base.running if held.job in grouped)
        self.problem = compile_problem(edit_instance(self.base, running=stay), lost=find_lost(self.base))
        placed = placed_in(self.problem, base.running, self.problem.running_records)
        self.state = State(self.problem, tuple(placed.get(job) for job in range(self.problem.num_jobs)))

    def jobs_on(self, domains: Collection[str]) -> frozenset[str]:
        """Return the jobs on some domains."""
        return frozenset().union(*(self.candidates[name] for name in domains))

    def size(self, jobs: Collection[str]) -> tuple[int, int]:
        """Return the number of jobs and the GPU-milli that they request together."""
        return len(jobs), sum(self.milli[job] for job in jobs)

    def least_moves(self, count: int) -> int:
        """Return a lower bound of the moves that empty ``count`` more domains."""
        spans = Counter(job for jobs in self.candidates.values() for job in jobs)
        sums = sorted(sum((Fraction(1, spans[job]) for job in jobs), Fraction(0)) for jobs in self.candidates.values())
        return math.ceil(sum(sums[:count], Fraction(0)))

    def cannot_move(self, domains: Collection[str], jobs: Collection[str]) -> bool:
        """Return whether one of the jobs does not fit outside of these and the empty domains, even alone."""
        excluded = {node for name in (*self.free, *domains) for node in self.under[name]}
        stays = np.array([name not in excluded for name in self.problem.node_ids])
        records = {job.id: job for job in self.base.jobs if job.id in jobs}
        for job in records.values():
            free = free_capacity_of(self.state, job)
            if all(
                int(free.workers(requirement)[stays].sum()) < requirement.fewest
                for requirement in requirements_of(self.problem, job)
            ):
                return True
        return False

    def most(self) -> int:
        """Return the maximum of empty domains: where shares bind, the others must hold all running jobs."""
        if self.base.policy.share_mode == "overcommit":
            return len(self.free) + len(self.candidates)
        spare = 1000 * self._gpus - self.base.running_gpu_milli
        sizes = sorted(1000 * self._capacity[name] for name in (*self.free, *self.candidates))
        return sum(size <= spare for size in accumulate(sizes))


def _next(
    occupation: _Occupation,
    open_: dict[str, frozenset[str]],
    chosen: list[str],
    count: int,
    most_moves: int | None,
    deadline: Deadline,
) -> list[str]:
    """Return the next domains to empty, with the fewest jobs; remove from ``open_`` those that cannot be emptied."""
    batch: list[str] = []
    held = occupation.jobs_on(chosen)
    left = dict(open_)
    while left and len(batch) < count and not deadline.is_set():
        name = min(left, key=lambda domain: (*occupation.size(left[domain] - held), domain))
        jobs = left.pop(name)
        if most_moves is not None and len(held | jobs) > most_moves:
            continue
        if occupation.cannot_move([*chosen, *batch, name], jobs):
            if not batch:
                del open_[name]
            continue
        batch.append(name)
        held |= jobs
    return batch


def _try(
    engine: Engine, occupation: _Occupation, domains: list[str], limits: Limits, deadline: Deadline
) -> dict[str, Placement] | None:
    """Place the jobs of the domains elsewhere while all others stay; None if no such plan is found."""
    gone = [
        node for name in (*occupation.free, *domains) for node in occupation.under[name]
    ]  # empty domains stay empty
    if len(gone) == len(occupation.base.cluster.nodes):
        return None
    after = without_nodes(occupation.base, gone)
    trial = attempt(engine, after, limits, deadline)
    if not trial.fits:
        return None
    moved = set(displaced(occupation.base, after))
    return {placement.job: placement for placement in trial.plan.placements if placement.job in moved}


def _in_order(occupation: _Occupation, moved: dict[str, Placement]) -> tuple[tuple[Relocation, ...], bool]:
    """Return moves in an order in which each keeps the rules at its time; the referee checks the final placements."""
    base, problem = occupation.base, occupation.problem
    state = State(problem, occupation.state.allocation())
    before = {held.job: tuple(a.node for a in held.assignments) for held in base.running}
    pending, order = placed_in(problem, moved.values()), list[str]()
    while pending:
        for job, place in pending.items():
            back = state.apply(Move(job, None))
            if fits(state, job, place):
                state.apply(Move(job, place))
                order.append(problem.job_ids[job])
                del pending[job]
                break
            state.apply(back)
        else:
            break
    running = tuple(
        held.model_copy(update={"option": moved[held.job].option, "assignments": moved[held.job].assignments})
        if held.job in moved
        else held
        for held in base.running
    )
    after = edit_instance(base, running=running)
    if broken := violations(after, plan_of(after, ())):
        raise InternalFault(f"after the moves the referee refuses what runs: {broken[0].message}")
    moves = tuple(
        Relocation(
            job=name,
            from_nodes=before[name],
            to_nodes=tuple(assignment.node for assignment in moved[name].assignments),
            gpu_milli=occupation.milli[name],
        )
        for name in [*order, *(problem.job_ids[job] for job in pending)]
    )
    return moves, not pending
