"""The cheapest nodes, of one type or several, with which all jobs are placed: proven from below, found from above."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import Answer, true_of, unread_in
from placeopt.errors import BadArgument, BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.model.base import Id, Record
from placeopt.readable import amount, plural
from placeopt.view import Cell, Chart, Column, Figure, Table, View
from placeopt.view.records import Verdict
from placeopt.whatif.least import Counts
from placeopt.whatif.node_rounds import NodeRounds, NodeTrial
from placeopt.whatif.round_solving import LEAST_S, Limits, Trial

MIXED = 0.5
"""Part of the time that is reserved for mixtures."""
NAMED = 100
FITS = {True: "all placed", False: "proven too few", None: "open"}


class NodesOfType(Record):
    """
    The fewest nodes of one type alone with which all jobs are placed: ``at_least`` is proven, ``found`` suffices.

    ``found`` is None where no number that was tried suffices. ``impossible``: no number suffices, proven; then both are
    None, and ``never`` names the waiting jobs that do not fit even without the others, if any.
    """

    node_type: Id
    at_least: int | None
    found: int | None
    price_milli_per_hour: int
    """Of one such node."""
    gpus: int
    """Of one such node: GPU hours an hour."""
    impossible: bool = False
    never: tuple[Id, ...] = ()
    """The first hundred of them."""

    @property
    def proven(self) -> bool:
        """Whether both bounds meet."""
        return self.found is not None and self.found == self.at_least


class Added(Answer):
    """
    The cheapest nodes, of one type or mixed, with which all jobs are placed.

    ``found``: the number of each of the ``types`` in the cheapest mixture found, for ``price_milli_per_hour``; no
    mixture suffices for less than ``at_least_milli_per_hour``, proven; None: no bound was computed.
    """

    types: tuple[NodesOfType, ...]
    found: tuple[int, ...] | None
    price_milli_per_hour: int | None
    at_least_milli_per_hour: int | None
    tried: tuple[NodeTrial, ...]
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether both bounds meet."""
        if len(self.types) == 1:
            return self.types[0].proven
        return self.found is not None and self.price_milli_per_hour == self.at_least_milli_per_hour

    @property
    def impossible(self) -> bool:
        """Whether no number of nodes suffices, proven."""
        return len(self.types) == 1 and self.types[0].impossible

    def view(self) -> View:
        """Return the numbers found and proven, by type, their price, and what was tried."""
        price, least = self.price_milli_per_hour, self.at_least_milli_per_hour
        title, verdict = self._words()
        names = [each.node_type for each in self.types]
        tried: list[tuple[Cell, ...]] = [
            (*one.nodes, FITS[one.fits], one.waiting, one.gpu_milli_waiting) for one in self.tried
        ]
        of_types = [
            (one.node_type, one.at_least, one.found, one.price_milli_per_hour / 1000, one.gpus) for one in self.types
        ]
        gpu_hours = (
            None if self.found is None else sum(n * one.gpus for n, one in zip(self.found, self.types, strict=True))
        )
        waiting = (Column(name="jobs waiting"), Column(name="GPUs waiting", unit="gpu_milli"))
        return View(
            title=title,
            verdict=verdict,
            proof=self.proof("numbers below 'at least' are proven not to be enough; what is found has a checked plan"),
            figures=(
                *(
                    Figure(name=f"nodes of {name}", value=None if self.found is None else self.found[i], better="less")
                    for i, name in enumerate(names)
                ),
                Figure(name="price an hour", value=None if price is None else price / 1000, better="less"),
                Figure(name="at least, proven", value=None if least is None else least / 1000),
                Figure(name="GPU hours an hour", value=gpu_hours, better="less"),
                Figure(name="seconds", value=self.seconds, unit="s"),
            ),
            notes=("running jobs stay where they are",),
            tables=(
                Table(
                    name="Each type alone",
                    columns=(
                        Column(name="type"),
                        Column(name="at least", better="less"),
                        Column(name="found", better="less"),
                        Column(name="price of one"),
                        Column(name="GPUs of one"),
                    ),
                    rows=tuple(of_types),
                ),
                Table(
                    name="Tried",
                    columns=(*(Column(name=f"of {name}") for name in names), Column(name="answer"), *waiting),
                    rows=tuple(tried),
                    keys=len(names),
                ),
            ),
            chart=Chart(kind="scatter", table="Tried", x=f"of {names[0]}", y=("jobs waiting",), label="answer"),
        )

    def _words(self) -> tuple[str, Verdict]:
        """Return the title, and how it is read."""
        one, several = self.types[0], len(self.types) > 1
        if self.impossible:
            return f"no number of nodes like {one.node_type} places {', '.join(one.never[:10]) or 'all jobs'}", "bad"
        if self.found is None:
            if several:
                return "neither one of these types nor a mixture was found to place all jobs", "open"
            return (
                f"at least {one.at_least:,} more nodes like {one.node_type}; no number was found to be enough",
                "open",
            )
        price = f"price {amount((self.price_milli_per_hour or 0) / 1000)} an hour"
        if several:
            named = [f"{n:,} {each.node_type}" for n, each in zip(self.found, self.types, strict=True) if n]
            return f"{' + '.join(named) or 'no more nodes'} place all jobs: {price}", "good" if self.proven else "open"
        span = "" if self.proven else f"{one.at_least:,} to "
        said = f"{span}{plural(self.found[0], 'more node')} like {one.node_type}"
        return f"{said} place{'s' * (self.found == (1,))} all jobs: {price}", "good" if self.proven else "open"


@checked
def add(
    instance: Instance,
    *node_types: str,
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[NodeTrial], None] | None = None,
) -> Added:
    """
    Find the cheapest nodes with which all jobs of the round are placed; running jobs stay where they are.

    Parameters
    ----------
    instance
        The round.
    node_types
        Machine types of the cluster: added nodes have the domain, labels and taints that all nodes of the type share.
        Or ids of nodes to copy.
    limits
        ``time_limit_s`` applies to the whole search: of several types half of it in equal parts to each alone.
    cancel
        Set it from another thread to stop with the interval known by then.
    on_news
        Called after every try.

    Returns
    -------
    Added
        The interval of each type alone, the cheapest mixture, and every number that was tried.

    Raises
    ------
    BadInput
        If no type is given, one is unknown or given twice, or a price is 0 where there are several.

    Notes
    -----
    More nodes never place less, so a number that is proven insufficient refutes all smaller ones, and a plan for one
    number holds for all larger ones. The first numbers follow from the missing GPUs, the next ones from halving.
    """
    limits = limits or Limits()
    clock = Deadline(limits.time_limit_s, cancel)
    if not node_types:
        raise BadArgument("node types: expected at least one")
    if len(set(node_types)) < len(node_types):
        raise BadArgument(f"node types: {', '.join(node_types)}: expected each once")
    milli = {job.id: job.gpu_milli for job in instance.jobs}
    tried: list[NodeTrial] = []

    def note(nodes: Counts, trial: Trial) -> None:
        waiting = [unplaced.job for unplaced in trial.plan.unplaced]
        short = sum(milli[name] for name in waiting)
        tried.append(NodeTrial(nodes=nodes, fits=trial.fits, waiting=len(waiting), gpu_milli_waiting=short))
        if on_news is not None:
            on_news(tried[-1])

    with Engine() as engine:
        types: list[NodesOfType] = []
        for axis, node_type in enumerate(node_types):
            later_s = MIXED * limits.time_limit_s if len(node_types) > 1 else 0.0
            share = replace(limits, time_limit_s=max(LEAST_S, (clock.left_s - later_s) / (len(node_types) - axis)))
            of_axis = partial(_noted, note, axis, len(node_types))
            types.append(
                _alone(NodeRounds(engine, instance, [node_type], share, cancel, of_axis, prices=[1]), node_type)
            )
        found, least = _of_one(types[0])
        if len(types) > 1:
            rest = replace(limits, time_limit_s=max(LEAST_S, clock.left_s))
            rounds = NodeRounds(engine, instance, node_types, rest, cancel, note)
            found, least = _mixed(types, rounds)
            types = [_sharpened(one, axis, tried) for axis, one in enumerate(types)]
    answer = Added(
        types=tuple(types),
        found=found,
        price_milli_per_hour=None
        if found is None
        else sum(count * one.price_milli_per_hour for count, one in zip(found, types, strict=True)),
        at_least_milli_per_hour=least,
        tried=tuple(sorted(tried, key=lambda one: one.nodes)),
        seconds=clock.spent_s,
    )

    def again() -> Added:
        left = replace(limits, time_limit_s=max(LEAST_S, clock.left_s))
        return add(unread.freest(instance), *node_types, limits=left, cancel=cancel)

    unread = unread_in(instance, moved=())
    return true_of(answer, unread, again, lambda one: (one.types, one.found, one.at_least_milli_per_hour))


def _noted(note: Callable[[Counts, Trial], None], axis: int, axes: int, counts: Counts, trial: Trial) -> None:
    """Note the trial of one type among several."""
    note(tuple(counts[0] if i == axis else 0 for i in range(axes)), trial)


def _alone(rounds: NodeRounds, node_type: str) -> NodesOfType:
    """Return the fewest nodes of one type."""
    never, search = rounds.never(), rounds.search
    if not never:
        rounds.run()
    refuted = max((counts[0] for counts in search.refuted), default=-1)
    none = bool(never) or refuted >= search.most
    return NodesOfType(
        node_type=node_type,
        at_least=None if none else refuted + 1,
        found=None if none or search.found is None else search.found[0],
        price_milli_per_hour=rounds.prices[0],
        gpus=rounds.gpus[0],
        impossible=none,
        never=never[:NAMED],
    )


def _of_one(one: NodesOfType) -> tuple[Counts | None, int | None]:
    """Return the number of nodes of the only type, and the price below which none suffices."""
    least = None if one.at_least is None else one.at_least * one.price_milli_per_hour
    return None if one.found is None else (one.found,), least


def _mixed(types: Sequence[NodesOfType], rounds: NodeRounds) -> tuple[Counts | None, int | None]:
    """Return the cheapest mixture, and the price below which none suffices."""
    search, axes = rounds.search, range(len(types))
    for one, price in zip(types, rounds.prices, strict=True):
        if not price:
            raise BadInput(f"node type {one.node_type!r}: price_milli_per_hour is 0; the cheapest mixture needs prices")
    for axis, one in enumerate(types):
        refuted = search.most if one.at_least is None else one.at_least - 1
        search.know(tuple(refuted if i == axis else 0 for i in axes), fits=False)
        if one.found is not None:
            search.know(tuple(one.found if i == axis else 0 for i in axes), fits=True)
    rounds.run()
    return search.found, search.at_least


def _sharpened(alone: NodesOfType, axis: int, tried: Sequence[NodeTrial]) -> NodesOfType:
    """
    Return the result for a type alone, sharpened by mixtures.

    A mixture that is proven insufficient refutes its number of every type; a sufficient one of this type alone counts.
    """
    if alone.impossible or alone.at_least is None:
        return alone
    refuted = max((row.nodes[axis] for row in tried if row.fits is False), default=-1)
    sufficient = [row.nodes[axis] for row in tried if row.fits and row.nodes[axis] == sum(row.nodes)]
    found = min(sufficient if alone.found is None else [*sufficient, alone.found], default=None)
    return alone.model_copy(update={"at_least": max(alone.at_least, refuted + 1), "found": found})
