"""The cheapest nodes of several types, alone or mixed, with which all jobs are placed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.errors import BadArgument, BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.whatif.add_nodes import NodeTrials, add
from placeopt.whatif.answers import Cheapest, MixtureTrial, NodesNeeded, NodeTrial
from placeopt.whatif.round_solving import ROUND_SHARE, Limits

MIXED = 0.5
"""Part of the time that is reserved for mixtures."""


MOST_MIXTURES = 4_000_000
"""Size of the grid beyond which it is not made; then no lower bound of the price is proven."""


@checked
def cheapest(
    instance: Instance,
    node_types: Sequence[str],
    *,
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[NodeTrial], None] | None = None,
    on_mixture: Callable[[MixtureTrial], None] | None = None,
) -> Cheapest:
    """
    Find the fewest nodes of each type as `placeopt.whatif.add` does, then the cheapest mixture.

    Parameters
    ----------
    node_types
        Machine types, or ids of nodes to copy.
    limits
        ``time_limit_s`` applies to all searches together: half of it in equal parts to the types, the rest to mixtures.

    Raises
    ------
    BadInput
        If no type is given, one is unknown or given twice, or a price is 0.
    """
    limits = limits or Limits(60.0)
    clock = Deadline(limits.time_limit_s, cancel)
    if not node_types:
        raise BadArgument("node types: expected at least one")
    if len(set(node_types)) < len(node_types):
        raise BadArgument(f"node types: {', '.join(node_types)}: expected each once")
    choices: list[NodesNeeded] = []
    for number, kind in enumerate(node_types):
        alone = clock.left_s - MIXED * limits.time_limit_s if len(node_types) > 1 else clock.left_s
        part = replace(limits, time_limit_s=max(0.5, alone / (len(node_types) - number)))
        choices.append(add(instance, kind, limits=part, cancel=cancel, on_news=on_news))
    with Engine() as engine:
        rest = replace(limits, time_limit_s=max(0.5, clock.left_s))
        mixtures = MixtureSearch(NodeTrials(engine, instance, node_types, rest, cancel), choices, on_mixture)
        mixtures.run()
    choices = [with_mixture_results(choice, axis, mixtures.tried) for axis, choice in enumerate(choices)]
    prices = {
        choice.node_type: choice.found * choice.price_milli_per_hour for choice in choices if choice.found is not None
    }
    return Cheapest(
        choices=tuple(choices),
        best=min(prices, key=lambda kind: (prices[kind], kind), default=None),
        mixture=mixtures.found,
        price_milli_per_hour=mixtures.price,
        at_least_milli_per_hour=mixtures.at_least,
        tried=tuple(mixtures.tried),
        seconds=clock.spent_s,
    )


def with_mixture_results(alone: NodesNeeded, axis: int, tried: Sequence[MixtureTrial]) -> NodesNeeded:
    """
    Return the result for a type alone, sharpened by mixtures; ``axis`` is the index of the type in them.

    A mixture that is proven insufficient refutes its number of every type; a sufficient one of this type alone counts.
    """
    if alone.impossible or alone.at_least is None:
        return alone
    refuted = max((row.nodes[axis] for row in tried if row.fits is False), default=-1)
    sufficient = [row.nodes[axis] for row in tried if row.fits and row.nodes[axis] == sum(row.nodes)]
    found = min(sufficient if alone.found is None else [*sufficient, alone.found], default=None)
    return alone.model_copy(update={"at_least": max(alone.at_least, refuted + 1), "found": found})


Grid = npt.NDArray[np.bool_]


class MixtureSearch:
    """
    All mixtures that are cheaper than the best known one, as a grid with an axis of 0, 1, 2, ... nodes for each type.

    A mixture that is proven insufficient refutes all with no more nodes of any type. The next one tried has a price in
    the middle of the open ones. Where no type suffices alone, equal numbers of all are doubled until they do. ``found``
    and ``price``: the cheapest mixture that places all jobs, and its price per hour; ``tried``: all that were solved.
    """

    def __init__(
        self,
        trials: NodeTrials,
        choices: Sequence[NodesNeeded],
        on_news: Callable[[MixtureTrial], None] | None,
    ) -> None:
        self._trials, self._on_news, self._choices = trials, on_news, choices
        cluster = trials.instance.cluster
        self._prices = np.array([cluster.price_of(node) for node in trials.nodes], dtype=np.int64)
        if not self._prices.all():
            free = trials.nodes[int(np.argmin(self._prices))].machine
            raise BadInput(f"node type {free!r}: price_milli_per_hour is 0; the cheapest mixture needs prices")
        self._gpus = np.array([len(cluster.machine_of(node).gpus) for node in trials.nodes])
        self.tried: list[MixtureTrial] = []
        single = [
            (choice.found * choice.price_milli_per_hour, i)
            for i, choice in enumerate(choices)
            if choice.found is not None
        ]
        self.price: int | None = None
        self.found: tuple[int, ...] | None = None
        self._open: Grid | None = None
        if single:
            self.price, best = min(single)
            self.found = tuple((choices[best].found or 0) * (i == best) for i in range(len(choices)))

    @property
    def at_least(self) -> int | None:
        """The price below which no mixture suffices, proven; None without a grid."""
        if self._open is None:
            return None
        prices = self._all_prices[self._open]
        return int(prices.min(initial=self.price or 0))

    def run(self) -> None:
        """Search until both prices meet or the time is over."""
        if self.price is None:
            self._double_all()
        if self.price is not None:
            self._make_grid(self.price)
        undecided = None if self._open is None else self._open.copy()
        thorough = False
        while undecided is not None and self._open is not None and not self._over():
            undecided &= self._open
            if not undecided.any():
                if thorough:
                    break
                thorough, undecided = True, self._open.copy()
                continue
            mixture = self._next(undecided)
            fits = self._try(mixture, thorough=thorough)
            if fits is None:
                undecided[mixture] = False
            self._update(mixture, fits)

    def _double_all(self) -> None:
        """Double the nodes of each type until all jobs are placed, or there are as many as workers."""
        count, workers = 1, self._trials.workers
        while self.price is None and not self._over():
            mixture = (min(count, workers),) * len(self._prices)
            if self._try(mixture, thorough=True):
                self.found, self.price = mixture, int(self._prices.sum()) * mixture[0]
            elif count >= workers:
                break
            count *= 2

    def _make_grid(self, most: int) -> None:
        """Make the grid of mixtures below a price, and enter what is refuted for single types."""
        sizes = [int((most - 1) // price) + 1 for price in self._prices]
        if int(np.prod([float(size) for size in sizes])) > MOST_MIXTURES:
            return
        axes = [np.arange(size) * int(price) for size, price in zip(sizes, self._prices, strict=True)]
        self._all_prices = sum(np.ix_(*axes), np.zeros((), dtype=np.int64))
        self._open = self._all_prices < most
        for row in self.tried:
            if row.fits is False:
                self._update(tuple(min(n, size - 1) for n, size in zip(row.nodes, sizes, strict=True)), fits=False)
        for i, choice in enumerate(self._choices):
            refuted = sizes[i] - 1 if choice.at_least is None else choice.at_least - 1
            if refuted >= 0:
                self._update(tuple(min(refuted, sizes[i] - 1) * (i == axis) for axis in range(len(sizes))), fits=False)

    def _next(self, undecided: Grid) -> tuple[int, ...]:
        """Return the mixture whose price is nearest to the middle of those open; of equal ones that of most GPUs."""
        prices = self._all_prices[undecided]
        middle = (int(prices.min()) + int(prices.max())) // 2
        places = np.argwhere(undecided)
        off = np.abs(prices - middle)
        near = places[off == off.min()]
        return tuple(int(n) for n in near[int(np.argmax(near @ self._gpus))])

    def _update(self, mixture: tuple[int, ...], fits: bool | None) -> None:
        if self._open is None:
            return
        if fits is False:
            self._open[tuple(slice(0, n + 1) for n in mixture)] = False
        elif fits:
            self.found, self.price = mixture, int(self._prices @ np.array(mixture))
            self._open &= self._all_prices < self.price

    def _try(self, mixture: tuple[int, ...], *, thorough: bool) -> bool | None:
        share = min(self._trials.clock.left_s, ROUND_SHARE * self._trials.time_limit_s)
        trial = self._trials.solve(mixture, max(0.2, share), thorough=thorough)
        row = MixtureTrial(nodes=mixture, fits=trial.fits, waiting=len(trial.plan.unplaced))
        self.tried.append(row)
        if self._on_news is not None:
            self._on_news(row)
        return trial.fits

    def _over(self) -> bool:
        return not self._trials.clock.leaves(0.05)
