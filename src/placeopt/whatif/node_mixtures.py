"""The cheapest mixture of nodes of several types with which all jobs are placed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from placeopt.errors import BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Node
from placeopt.whatif.answers import MixtureTrial, NodesNeeded
from placeopt.whatif.domain_levels import free_prefix
from placeopt.whatif.instance_edit import with_nodes
from placeopt.whatif.round_solving import Limits, attempt, placing_only

Grid = npt.NDArray[np.bool_]
MOST_MIXTURES = 4_000_000
"""Size of the grid beyond which it is not made; then no lower bound of the price is proven."""
ROUND_SHARE = 0.25
"""Part of the time that one round may take."""
QUICK = "stranding"
"""A greedy method with a bound, as in `placeopt.whatif.add`."""


class MixtureSearch:
    """
    All mixtures that are cheaper than the best known one, as a grid with an axis of 0, 1, 2, ... nodes for each type.

    A mixture that is proven insufficient refutes all with no more nodes of any type. The next one tried has a price in
    the middle of the open ones. Where no type suffices alone, equal numbers of all are doubled until they do.

    Attributes
    ----------
    found, price
        The cheapest mixture that places all jobs, and its price per hour.
    tried
        Every mixture that was solved.
    """

    def __init__(
        self,
        instance: Instance,
        models: Sequence[Node],
        choices: Sequence[NodesNeeded],
        limits: Limits,
        cancel: threading.Event | None,
        on_news: Callable[[MixtureTrial], None] | None,
    ) -> None:
        self._began = time.monotonic()
        self._instance, self._models, self._limits = placing_only(instance), models, limits
        self._cancel, self._on_news = cancel, on_news
        self._prices = np.array([model.price_milli_per_hour for model in models], dtype=np.int64)
        if not self._prices.all():
            free = models[int(np.argmin(self._prices))].machine
            raise BadInput(f"node type {free!r}: price_milli_per_hour is 0; the cheapest mixture needs prices")
        self.tried: list[MixtureTrial] = []
        single = [(one.found * one.price_milli_per_hour, i) for i, one in enumerate(choices) if one.found is not None]
        self.price: int | None = None
        self.found: tuple[int, ...] | None = None
        self._choices = choices
        self._open: Grid | None = None
        if single:
            self.price, best = min(single)
            self.found = tuple((choices[best].found or 0) * (i == best) for i in range(len(models)))

    @property
    def at_least(self) -> int | None:
        """The price below which no mixture suffices, proven; None without a grid."""
        if self._open is None:
            return None
        prices = self._all_prices[self._open]
        return int(prices.min(initial=self.price or 0))

    def run(self, engine: Engine) -> None:
        """Search until both prices meet or the time is over."""
        if self.price is None:
            self._double_all(engine)
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
            fits = self._try(engine, mixture, thorough=thorough)
            if fits is None:
                undecided[mixture] = False
            self._update(mixture, fits)

    def _double_all(self, engine: Engine) -> None:
        """Double the nodes of each type until all jobs are placed, or there are as many as workers."""
        runs = {held.job for held in self._instance.running}
        workers = sum(max(o.workers for o in job.options) for job in self._instance.jobs if job.id not in runs)
        count = 1
        while self.price is None and not self._over():
            mixture = (min(count, workers),) * len(self._models)
            if self._try(engine, mixture, thorough=True):
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
        for i, one in enumerate(self._choices):
            refuted = sizes[i] - 1 if one.at_least is None else one.at_least - 1
            if refuted >= 0:
                self._update(tuple(min(refuted, sizes[i] - 1) * (i == axis) for axis in range(len(sizes))), fits=False)

    def _next(self, undecided: Grid) -> tuple[int, ...]:
        """Return the mixture whose price is nearest to the middle of those open; of equal ones that of most GPUs."""
        prices = self._all_prices[undecided]
        middle = (int(prices.min()) + int(prices.max())) // 2
        places = np.argwhere(undecided)
        off = np.abs(prices - middle)
        near = places[off == off.min()]
        sizes = {machine.id: len(machine.gpus) for machine in self._instance.cluster.machines}
        gpus = near @ np.array([sizes[model.machine] for model in self._models])
        return tuple(int(n) for n in near[int(np.argmax(gpus))])

    def _update(self, mixture: tuple[int, ...], fits: bool | None) -> None:
        if self._open is None:
            return
        if fits is False:
            self._open[tuple(slice(0, n + 1) for n in mixture)] = False
        elif fits:
            self.found, self.price = mixture, int(self._prices @ np.array(mixture))
            self._open &= self._all_prices < self.price

    def _try(self, engine: Engine, mixture: tuple[int, ...], *, thorough: bool) -> bool | None:
        limits = replace(
            self._limits,
            time_limit_s=max(0.2, min(self._left_s, ROUND_SHARE * self._limits.time_limit_s)),
            method=self._limits.method if thorough else QUICK,
        )
        trial = attempt(engine, self._with(mixture), limits, self._cancel)
        row = MixtureTrial(nodes=mixture, fits=trial.fits, waiting=len(trial.plan.unplaced))
        self.tried.append(row)
        if self._on_news is not None:
            self._on_news(row)
        return trial.fits

    def _with(self, mixture: Sequence[int]) -> Instance:
        present = self._instance.cluster.nodes
        prefix = free_prefix(node.id for node in present)
        more = (
            model.model_copy(update={"id": f"{prefix}-{kind}.{i}"})
            for kind, (model, count) in enumerate(zip(self._models, mixture, strict=True))
            for i in range(count)
        )
        return with_nodes(self._instance, (*present, *more))

    @property
    def _left_s(self) -> float:
        return self._limits.time_limit_s - (time.monotonic() - self._began)

    def _over(self) -> bool:
        return (self._cancel is not None and self._cancel.is_set()) or self._left_s <= 0.05
