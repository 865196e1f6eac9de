"""Nodes or racks that can be emptied by moving running jobs: number of moves and their order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import Answer, displaced, truth, unread_in
from placeopt.edits.hardware_steps import without_nodes
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Placement
from placeopt.model.base import Id, Record
from placeopt.readable import plural
from placeopt.view import Chart, Column, Figure, Table, View
from placeopt.whatif.occupation import Occupation
from placeopt.whatif.relocations import Relocation, in_order
from placeopt.whatif.round_solving import Limits, attempt

ROUND_S = 5.0
"""Time limit of one try."""
POINTS = 100
"""Approximate number of points of a front: on large clusters, several domains are emptied between two points."""


class EmptiedDomains(Record):
    """
    Moves that empty domains: ``freed`` domains are empty afterwards, including those that were empty before.

    ``moves`` are in an order that keeps every rule after each move; ``ordered`` is false where no such order was found.
    ``at_least``: the proven minimum of moves for so many domains.
    """

    freed: int
    domains: tuple[Id, ...]
    """Those emptied by the moves, in order."""
    moves: tuple[Relocation, ...]
    at_least: int
    ordered: bool


class Defrag(Answer):
    """
    Numbers of empty domains against moves of running jobs.

    ``most``: the proven maximum of empty domains. ``stuck``: domains that hold a job that must not move.
    """

    level: Id
    domains: int
    free_before: int
    front: tuple[EmptiedDomains, ...]
    most: int
    stuck: int
    moves_most: int | None = None
    """The limit of moves; None: no limit."""
    exempt: int = 0
    """Number of jobs that must not move."""
    all_movable: bool = False
    """Whether jobs that are not marked as movable may move too."""
    seconds: float

    def view(self) -> View:
        """Return the number of empty domains against moves, and the moves that empty most."""
        last = self.front[-1] if self.front else None
        after = self.free_before if last is None else last.freed
        asked = [] if self.moves_most is None else [f"with at most {plural(self.moves_most, 'move')}"]
        asked += [f"{plural(self.exempt, 'job')} exempt"] if self.exempt else []
        asked += ["all running jobs may be moved, marked as movable or not"] if self.all_movable else []
        if self.stuck:
            stuck = plural(self.stuck, self.level)
            asked.append(f"{stuck} with jobs that must not be moved: exempt, or not marked as movable")
        front = [
            (
                point.freed,
                len(point.moves),
                point.at_least,
                sum(move.gpu_milli for move in point.moves),
                point.domains[-1],
            )
            for point in self.front
        ]
        moves = [
            (number, move.job, ", ".join(move.from_nodes), ", ".join(move.to_nodes), move.gpu_milli)
            for number, move in enumerate(() if last is None else last.moves, 1)
        ]
        order = "in an" if last is None or last.ordered else "not in an"
        return View(
            title=f"{after:,} of {self.domains:,} empty instead of {self.free_before:,}, by {self.level}",
            verdict="good" if self.front else "bad",
            proof=self.proof(f"more than {self.most:,} are impossible, fewer moves than 'at least' are not enough"),
            figures=(
                Figure(name="empty", value=after, better="more"),
                Figure(name="empty before", value=self.free_before),
                Figure(name="at most", value=self.most),
                Figure(name="moves", value=len(moves), better="less"),
                Figure(name="seconds", value=self.seconds, unit="s"),
            ),
            notes=tuple(asked),
            tables=(
                Table(name="Front", columns=FRONT, rows=tuple(front)),
                Table(
                    name="Moves",
                    columns=MOVES,
                    rows=tuple(moves),
                    note=f"of the last point, {order} order that keeps every rule after each move",
                ),
            ),
            chart=Chart(kind="steps", table="Front", x="empty", y=("moves", "at least")) if front else None,
        )


FRONT = (
    Column(name="empty"),
    Column(name="moves", better="less"),
    Column(name="at least"),
    Column(name="GPUs moved", unit="gpu_milli", better="less"),
    Column(name="emptied last"),
)
MOVES = (
    Column(name="move"),
    Column(name="job"),
    Column(name="from"),
    Column(name="to"),
    Column(name="GPUs", unit="gpu_milli"),
)


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
    occupation = Occupation(instance, level, (*exempt, *unread.kept), everyone=everyone)
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
            moves, ordered = in_order(occupation, moved)
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

    def proven(of: Occupation) -> object:
        return of.most(), [of.least_moves(point.freed - len(occupation.free)) for point in front]

    of, names = truth(
        unread,
        lambda: proven(occupation) == proven(Occupation(unread.freest(instance), level, exempt, everyone=everyone)),
    )
    return answer.model_copy(update={"of": of, "unread": names})


def _next(
    occupation: Occupation,
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
    engine: Engine, occupation: Occupation, domains: list[str], limits: Limits, deadline: Deadline
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
