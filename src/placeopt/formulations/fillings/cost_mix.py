"""Everything that the cost level of a round is made of: starts, nodes, parts, spreads, fillings, pricing and master."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.cost_relaxation.model import CapacityCut
from placeopt.formulations.fillings.disturbance import disturbance_of
from placeopt.formulations.fillings.gangs import gang_paths
from placeopt.formulations.fillings.groups import bundle_groups_of, starts_of
from placeopt.formulations.fillings.master import SCALE, Master, Prices
from placeopt.formulations.fillings.mixing import EACH, NEVER, MixPricing, best_of
from placeopt.formulations.fillings.parts import parts_of
from placeopt.formulations.fillings.pool import Column, Pool
from placeopt.formulations.fillings.spreads import Crossing, ListedSpreads, PackedSpreads, Spread, Spreading
from placeopt.formulations.fillings.tables import TablePricing
from placeopt.linear import LinearModel
from placeopt.problem import GPU_MILLI, Allocation, IntArray, State
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.objective import Weighted, cost, value, weight_of

COUNTED = (Communication, Fragmentation, Interference, ResourceCost)
"""Costs that fillings and starts are charged for."""
COST_RELAXES = (
    "whom jobs in several nodes meet",
    "domains above nodes that are idle now",
    "CPU, memory, bandwidths and queues",
)
BEGINNINGS = (1 << 6, 1 << 10, 1 << 14)
"""Beginnings of fillings of a unit that are followed: more where fewer find nothing."""


class CostMix:
    """The least cost of plans worth a value, by fillings of parts and spreads of nodes."""

    def __init__(
        self,
        state: State,
        weighted: tuple[Weighted, ...],
        plan: Allocation,
        cut: CapacityCut | None,
        spend: Callable[[int], None],
    ) -> None:
        """
        Begin with the fillings of a plan.

        - ``state``: Holds the running jobs, which stay.
        - ``plan``: Is worth the value that counts.
        - ``cut``: What is known of room.
        - ``spend``: Is called with the work of each step of pricing, in numbers of beginnings, and may raise.

        Raises ``Unsupported`` where fillings cannot say anything of the costs.
        """
        counted = tuple(w for w in weighted if isinstance(w.cost, COUNTED))
        if not counted:
            raise Unsupported(
                "fillings count paths, interference, fragmentation and resources, none of which costs here"
            )
        problem, options = state.problem, state.problem.options
        paths, classes = weight_of(weighted, Communication), options.job_class
        disturbance = disturbance_of(problem, weight_of(weighted, Interference))
        apart = (options.bundles > 1) & (2 * options.bundle_gpus > np.diff(problem.node_gpu_start).max(initial=0))
        alone = (options.bundles == 1) | apart
        traffic = np.array([0 if c.edges else int(c.weight) for c in problem.class_communication], dtype=np.int64)
        profile = disturbance.profile[problem.class_profile[classes]]
        profile = np.where(alone, np.where(apart, disturbance.of_gangs(profile), profile), -1)
        self.groups = bundle_groups_of(
            problem, profile, np.where(alone & bool(paths), traffic[classes], 0), demand=False
        )
        own = weight_of(weighted, ResourceCost) * options.cost_milli + paths * traffic[classes] * gang_paths(
            state, apart, lambda: spend(0)
        )
        self.starts = starts_of(state, self.groups, own, None if cut is None else cut.pays, worthless=True)
        supply = np.zeros(len(self.groups), dtype=np.int64)
        np.add.at(supply, self.starts.bundle_group, self.starts.bundles * self.starts.most)
        parts, self.nodes = parts_of(state, disturbance, self.groups, paths, weight_of(weighted, Fragmentation))
        self.spreading = Spreading(problem, self.nodes, parts, self.groups, disturbance, paths, lambda: spend(0))
        try:
            self.spreads: ListedSpreads | PackedSpreads = ListedSpreads(self.spreading, supply)
        except Unsupported:
            self.spreads = PackedSpreads(self.spreading)
        self.parts, self._rows = self.spreads.parts, self.spreads.rows
        self.pricing = MixPricing(self.parts, self.groups, disturbance, supply, SCALE, spend)
        shared = bool((self.groups.milli < GPU_MILLI).any() and self.parts.saves.any())  # then tables say too little
        self._tables = None if shared else TablePricing(self.pricing, spend)
        self.pool = Pool(len(self.parts), len(self.groups))
        self.program = dict.fromkeys(self.spreads.of(n, ()) for n in range(len(self.nodes)))
        """Spreads of the program, in their order."""
        self._problem, self._depth = problem, 0
        self.fixed = cost(problem, state.allocation(), counted)
        """Cost of what runs."""
        spreads, fillings = self.held(plan)
        self.program.update(dict.fromkeys(spreads))
        self.pool.add(fillings)
        self.need = value(problem, plan) - value(problem, state.allocation())
        """Value that jobs that start have to reach."""
        self.master = Master(self.starts, self.groups.gpus > 0, self.nodes.count, 0 if cut is None else cut.most)

    def held(self, plan: Allocation) -> tuple[Counter[Spread], Counter[Column]]:
        """Return the spreads and fillings of a plan, each as often as it is there."""
        problem, options = self._problem, self._problem.options
        on_node: dict[int, list[tuple[int, Counter[int]]]] = {}
        for job, placement in enumerate(plan):
            if placement is None or job in problem.running:
                continue
            group, each = int(self.groups.of_option[placement.option]), int(options.bundle_gpus[placement.option])
            for first in range(0, len(placement.gpus), each or 1):
                gpus = placement.gpus[first : first + each]
                node = int(problem.gpu_node[gpus[0]])
                at = Counter(int(gpu - problem.node_gpu_start[node]) for gpu in gpus)
                on_node.setdefault(node, []).append((group, at))
        state_of = {node: n for n, nodes in enumerate(self.nodes.nodes) for node in nodes.tolist()}
        spreads, fillings = Counter[Spread](), Counter[Column]()
        for node, bundles in on_node.items():
            n = state_of[node]
            crossing: list[Crossing] = []
            inside: dict[int, Counter[int]] = {}
            for group, at in bundles:
                split = tuple(sum(at[gpu] for gpu in place) for place in self.nodes.places[n])
                if sum(part > 0 for part in split) > 1:
                    crossing.append((group, split))
                else:
                    inside.setdefault(int(np.argmax(split)), Counter())[group] += 1
            spread = self.spreads.of(n, tuple(sorted(crossing)))
            spreads[spread] += 1
            fillings.update(self.column(spread.units[r], tuple(sorted(held.items()))) for r, held in inside.items())
        return spreads, fillings

    def values(self, plan: Allocation, spreads: list[Spread], fillings: list[Column]) -> IntArray:
        """Return the values of a plan in the program over spreads and fillings that hold those of it."""
        problem, starts = self._problem, self.starts
        group_of = {job: group for group, jobs in enumerate(starts.jobs) for job in jobs.tolist()}
        at = {key: w for w, key in enumerate(zip(starts.job_group.tolist(), starts.place.tolist(), strict=True))}
        number = np.zeros(len(starts.most), dtype=np.int64)
        for job, placement in enumerate(plan):
            if placement is not None and job in group_of:
                number[at[group_of[job], problem.options_of(job).index(placement.option)]] += 1
        own, filled = self.held(plan)
        counts = [*(own[spread] for spread in spreads), *(filled[column] for column in fillings)]
        return np.concatenate((number, np.array(counts, dtype=np.int64)))

    def column(self, unit: int, filling: tuple[tuple[int, int], ...]) -> Column:
        """Return a filling of a unit as a column, with its cost."""
        return Column(unit, filling, self.pricing.cost(unit, self.pricing.counts(filling)))

    def model(self, deadline: float = float("inf")) -> LinearModel:
        """Build the program over what is known."""
        return self.program_of(list(self.program), self.pool.columns, deadline)

    def program_of(
        self, spreads: Sequence[Spread], fillings: Sequence[Column], deadline: float = float("inf")
    ) -> LinearModel:
        """Build the program over some spreads and fillings."""
        return self.master.cost_model(
            self.need, spreads, fillings, np.ones(len(self.parts), dtype=np.int64), deadline=deadline
        )

    def apart(self, deadline: float = float("inf")) -> LinearModel:
        """
        Build the program over single bundles, each with its part of what opens a part: its duals are the first prices.

        The share that is left of a part's GPUs counts together.
        """
        parts, pricing = self.parts, self.pricing
        room, takes = parts.room[:, 0], pricing.takes[:, 0]
        unit, item = np.nonzero(parts.allowed)
        own = (
            parts.own[unit, item]
            + pricing.beside[unit, item]
            - parts.saves[unit] * (self.groups.gpus * self.groups.milli)[item] // GPU_MILLI
        )
        own += parts.opening[unit] * takes[item] // np.maximum(room[unit], 1)
        fillings = [
            Column(*column)
            for column in zip(unit.tolist(), (((d, 1),) for d in item.tolist()), own.tolist(), strict=True)
        ]
        return self.master.cost_model(self.need, self.spreads.single(), fillings, room, takes[item], deadline)

    def price(self, prices: Prices) -> tuple[int, int]:
        """Take in fillings and spreads that pay more than known ones; return what the prices prove, and how many."""
        while True:
            _, total, new = self._paid(prices, BEGINNINGS[self._depth])
            new += self._add_spreads(prices, total)
            if new or self._depth + 1 == len(BEGINNINGS):
                break
            self._depth += 1
        return self.fixed + -(-self._proven(prices, self._most(total)) // SCALE), new

    def _proven(self, prices: Prices, most: IntArray) -> int:
        """Bound on the cost of what starts, in 1 / SCALE; no node of a state is paid more than ``most``, (N,)."""
        return prices.value * self.need - self.master.most_beyond(prices, most, self.nodes.count)

    def near(self, prices: Prices, limit: int, most: int) -> tuple[list[Spread], list[Column]] | None:
        """
        Return the spreads and fillings that plans may have which cost ``limit`` at most, by the prices.

        None where there are more than ``most``, or where spreads are not listed.
        """
        if isinstance(self.spreads, PackedSpreads):
            return None
        within, node = 0, self._rows.node
        while True:  # a plan costs more than what is proven by what its nodes are paid less than the most, together
            paid, total, _ = self._paid(prices, None, within)
            best = self._most(total)
            before, within = within, SCALE * (limit - self.fixed) - self._proven(prices, best)
            if within <= before:
                break
        rows = np.flatnonzero(best[node] - total <= within)
        if len(rows) > most:
            return None
        spreads = [self.spreads.spread(s) for s in rows.tolist()]
        lacks = best[node] - self.spreads.gains(prices.bundle, SCALE) - paid[self._rows.units].sum(axis=1)
        kept = lacks[rows] <= within
        least = np.full(len(paid), within + 1, dtype=np.int64)
        for units in self._rows.units[rows[kept]].T:
            np.minimum.at(least, units, lacks[rows[kept]])
        units = np.flatnonzero(least[:-1] <= within)
        found = self.pricing.within(prices.bundle, paid[units] - within + least[units] - 1, units, most)
        if found is None:
            return None
        return [spread for spread, keep in zip(spreads, kept, strict=True) if keep], found

    def _paid(self, prices: Prices, most: int | None, within: int = 0) -> tuple[IntArray, IntArray, int]:
        """
        Return what no filling of a unit pays more than, (U + 1,), the last 0; the same of spreads with fillings, (S,).

        Exact, or bounded by ``most`` as `MixPricing.price` is, where it matters for spreads that pay up to ``within``
        less than the best of their state of nodes; else an upper bound. Also returned is how many fillings are new.
        """
        rows, beneath, gains = self._rows, self._rows.beneath, self.spreads.gains(prices.bundle, SCALE)
        known = self.pool.most(prices.bundle, SCALE)
        paid, base = np.append(known, 0), np.flatnonzero(beneath == np.arange(len(beneath)))
        new = self._search(prices, known, base, most, paid)
        rest = np.setdiff1d(np.arange(len(beneath)), base)
        hope = np.maximum(self.pricing.bound(prices.bundle, rest), known[rest])
        paid[rest] = np.minimum(hope, paid[beneath[rest]] + SCALE * self.parts.opening[beneath[rest]])
        total = gains + paid[rows.units].sum(axis=1)
        best = np.zeros(len(self.nodes), dtype=np.int64)
        sure = ((rows.units < 0) | np.isin(rows.units, base)).all(axis=1)
        np.maximum.at(best, rows.node[sure], total[sure])
        alive = np.flatnonzero(total > best[rows.node] - within - 1)
        least = np.full(len(paid), -NEVER, dtype=np.int64)
        for units in rows.units[alive].T:
            np.minimum.at(least, units, best[rows.node[alive]] - within - 1 - total[alive] + paid[units])
        units = rest[least[rest] < -NEVER]
        new += self._search(prices, np.maximum(known, least[:-1]), units, most, paid)
        return paid, gains + paid[rows.units].sum(axis=1), new

    def _search(self, prices: Prices, least: IntArray, units: IntArray, most: int | None, paid: IntArray) -> int:
        """Search fillings of some units; write into ``paid`` what they pay at most, and return how many are new."""
        new, left, paid[units] = 0, units, -NEVER
        if self._tables:
            quick = self._tables.price(prices.bundle, least[units], units)
            paid[units], left = quick.most, units[quick.most > least[units]]
            new = self.pool.add(self.column(unit, filling) for unit, filling in quick.fillings)
        if most is None or not new:
            priced = self.pricing.price(prices.bundle, least[left], left, most)
            paid[left] = np.minimum(paid[left], priced.most)
            new += self.pool.add(self.column(unit, filling) for unit, filling in priced.fillings)
        return new

    def _most(self, total: IntArray) -> IntArray:
        """Shape (N,): the most of all spreads of a state of nodes, or 0 for nodes that stay as they are."""
        out = np.zeros(len(self.nodes), dtype=np.int64)
        np.maximum.at(out, self._rows.node, total)
        return out

    def _add_spreads(self, prices: Prices, total: IntArray) -> int:
        """Take in those spreads that pay more than known ones with known fillings; return how many are new."""
        known = np.append(self.pool.most(prices.bundle, SCALE), 0)
        least = np.zeros(len(self.nodes), dtype=np.int64)
        for spread in self.program:
            pays = sum(int(prices.bundle[d]) for d, _ in spread.crossings) - SCALE * spread.cost
            least[spread.node] = max(least[spread.node], pays + sum(int(known[unit]) for unit in spread.units))
        better = np.flatnonzero(total > least[self._rows.node])
        before = len(self.program)
        for s in better[best_of(self._rows.node[better], total[better], EACH)].tolist():
            self.program[self.spreads.spread(s)] = None
        return len(self.program) - before
