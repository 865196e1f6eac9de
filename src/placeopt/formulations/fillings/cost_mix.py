"""Everything that the cost level of a round is made of: starts, ways, pieces, parts, pool, pricing and master."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.capacity_cut import CapacityCut
from placeopt.formulations.fillings.cost_master import SCALE, CostMaster, CostPrices
from placeopt.formulations.fillings.disturbance import disturbance_of
from placeopt.formulations.fillings.gangs import gang_paths
from placeopt.formulations.fillings.groups import WHOLE, bundle_groups_of, starts_of
from placeopt.formulations.fillings.mixing import MixPricing
from placeopt.formulations.fillings.parts import parts_of
from placeopt.formulations.fillings.pieces import pieces_of
from placeopt.formulations.fillings.pool import Column, Pool
from placeopt.problem import Allocation, State
from placeopt.problem.free_capacity import gpu_milli_left
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.objective import Weighted, fixed_cost, value, weight_of

COUNTED = (Communication, Interference, ResourceCost)
"""Costs that fillings and starts are charged for."""
COST_RELAXES = (
    "which nodes and sockets hold the GPUs of a job, and which GPUs of these are free",
    "whom jobs in several sockets or nodes meet",
    "CPU, memory, bandwidths and queues",
)


class CostMix:
    """
    The least cost of plans worth a value, by fillings of parts.

    Jobs that lie in one part are charged for the jobs that they meet there. Paths inside nodes are as short as a way
    to lie in them allows, those of gangs as short as anywhere.
    """

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
        - ``spend``: Is called with the work of each step of pricing, in numbers of tables, and may raise.

        Raises ``Unsupported`` where fillings cannot say anything of the costs.
        """
        if not any(isinstance(w.cost, COUNTED) for w in weighted):
            raise Unsupported("fillings count paths, interference and resources, none of which costs anything here")
        problem, options = state.problem, state.problem.options
        paths, classes = weight_of(weighted, Communication), options.job_class
        disturbance = disturbance_of(problem, weight_of(weighted, Interference))
        alone = options.bundles == 1
        traffic = np.array([0 if c.edges else int(c.weight) for c in problem.class_communication], dtype=np.int64)
        profile = np.where(alone, disturbance.profile[problem.class_profile[classes]], -1)
        self._groups = bundle_groups_of(problem, profile, np.where(alone, traffic[classes], 0))
        own = weight_of(weighted, ResourceCost) * options.cost_milli + paths * traffic[classes] * gang_paths(
            state, lambda: spend(0)
        )
        self._starts = starts_of(state, self._groups, own)
        self._pieces, self._ways = pieces_of(problem, self._groups, disturbance, paths)
        self.parts = parts_of(state, disturbance, self._pieces)
        self.pricing = MixPricing(self._pieces, self.parts, disturbance, SCALE, spend)
        self.pool = Pool(len(self.parts), len(self._pieces))
        self._problem, self._part = problem, disturbance.part
        self.fixed = fixed_cost(state, weighted)
        """Cost of what runs, of terms that starts never lower."""
        self.pool.add(self._columns(plan))
        need = value(problem, plan) - value(problem, state.allocation())
        self.master = CostMaster(
            self._starts,
            self._groups,
            self._ways,
            self._pieces,
            self.parts,
            self.pool,
            need=need,
            idle=np.bincount(problem.gpu_node[gpu_milli_left(state) == WHOLE], minlength=problem.num_nodes),
            cut=cut,
            cut_pays=None if cut is None else cut.pays[self._options()],
        )
        self._problem = problem

    def _options(self) -> list[int]:
        """Option of each start, of its first job."""
        starts = self._starts
        return [
            self._problem.options_of(int(starts.jobs[group][0]))[place]
            for group, place in zip(starts.job_group.tolist(), starts.place.tolist(), strict=True)
        ]

    def _columns(self, plan: Allocation) -> list[Column]:
        """Fillings of all parts as a plan has them."""
        problem, options = self._problem, self._problem.options
        row = {
            (group, split): i
            for i, (group, split) in enumerate(zip(self._ways.bundle_group.tolist(), self._ways.split, strict=True))
        }
        kinds = {}
        for i in range(len(self._ways.split)):
            for kind in np.flatnonzero(self._ways.pieces[i]).tolist():
                kinds[i, int(self._pieces.gpus[kind])] = kind
        held: dict[int, tuple[int, Counter[int]]] = {}
        for job, placement in enumerate(plan):
            if placement is None or job in problem.running:
                continue
            group, each = int(self._groups.of_option[placement.option]), int(options.bundle_gpus[placement.option])
            for first in range(0, len(placement.gpus), each or 1):
                gpus = placement.gpus[first : first + each]
                inside = Counter(int(self._part[gpu]) for gpu in gpus)
                where = {part: next(gpu for gpu in gpus if self._part[gpu] == part) for part in inside}
                way = row[group, tuple(sorted(inside.values(), reverse=True))]
                for part, number in inside.items():
                    unit = int(self.parts.of_gpu[where[part]])
                    held.setdefault(part, (unit, Counter()))[1][kinds[way, number]] += 1
        return [self.column(unit, tuple(sorted(counts.items()))) for unit, counts in held.values()]

    def column(self, unit: int, filling: tuple[tuple[int, int], ...]) -> Column:
        """Return a filling of a unit as a column, with its cost."""
        return Column(unit, filling, self.pricing.cost(unit, filling))

    def price(self, prices: CostPrices) -> tuple[int, int]:
        """Take in fillings that pay more than known ones; return what the prices prove, and how many were new."""
        priced = self.pricing.price(prices.piece, self.pool.most(prices.piece, SCALE))
        bound = self.fixed + self.master.proven_bound(prices, priced.most)
        return bound, self.pool.add(self.column(unit, filling) for unit, filling in priced.fillings)
