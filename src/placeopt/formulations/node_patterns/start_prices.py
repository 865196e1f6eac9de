"""Prices to begin with: the duals of a relaxation that adds up the GPUs and the resources of all nodes."""

from __future__ import annotations

import numpy as np

from placeopt.formulations.node_patterns.groups import BundleGroups, JobGroups, NodeStates
from placeopt.linear import NO_LOWER, LinearModel, ModelBuilder
from placeopt.problem import IntArray


def _asked(bundle_groups: BundleGroups) -> IntArray:
    """Shape (D, 1 + R): smallest shares of a GPU and resources of a bundle."""
    smallest = bundle_groups.sizes[-1] if bundle_groups.sizes else 1
    shares = np.array([*bundle_groups.sizes, 0], dtype=np.int64)[bundle_groups.level] // smallest * bundle_groups.units
    return np.column_stack((shares, bundle_groups.demand))


def capacity_model(bundle_groups: BundleGroups, states: NodeStates, job_groups: JobGroups) -> LinearModel:
    """Build the linear program: jobs that start ask for no more than all nodes have together."""
    builder = ModelBuilder()
    starts = builder.add_variables(0, job_groups.size[job_groups.job_group])
    free = states.count @ np.column_stack((states.room[:, -1:].sum(axis=1), states.free))
    asked = _asked(bundle_groups)[job_groups.bundle_group] * job_groups.bundles[:, None]
    start, row = np.nonzero(asked)
    builder.add_rows(row, starts[start], asked[start, row], NO_LOWER, free)
    builder.add_rows(job_groups.job_group, starts, 1, NO_LOWER, job_groups.size)
    builder.set_objective(starts, job_groups.value, "max", 0)
    return builder.build()


def capacity_prices(
    bundle_groups: BundleGroups, job_groups: JobGroups, model: LinearModel, duals: np.ndarray
) -> IntArray:
    """Return the worth of a bundle of each group by the duals of ``model``, (D,), unit 1 / ``job_groups.scale``."""
    asked = _asked(bundle_groups)
    of_row = np.maximum(duals / model.row_divisor, 0)[: asked.shape[1]]
    return np.rint(np.minimum(asked @ of_row * job_groups.scale, 2.0**61)).astype(np.int64)


class CarriedPrices:
    """
    Prices of bundle groups from earlier rounds, by what a bundle asks for; a round leaves them for the next.

    Any prices prove a bound, so these need no check: after few changes they are close to the best ones.
    """

    def __init__(self) -> None:
        self._worth: dict[tuple[int, ...], float] = {}

    def keep(self, bundle_groups: BundleGroups, job_groups: JobGroups, price: IntArray) -> None:
        """Keep prices, (D,), unit 1 / ``job_groups.scale``, in the place of all earlier ones."""
        self._worth = dict(zip(_keys(bundle_groups), (price / job_groups.scale).tolist(), strict=True))

    def put_into(self, bundle_groups: BundleGroups, job_groups: JobGroups, price: IntArray) -> int:
        """Replace prices by those that are kept; returns how many bundle groups have one."""
        known = 0
        for k, key in enumerate(_keys(bundle_groups)):
            worth = self._worth.get(key)
            if worth is not None:
                price[k] = round(min(worth * job_groups.scale, 2.0**61))
                known += 1
        return known


def _keys(bundle_groups: BundleGroups) -> list[tuple[int, ...]]:
    """Share, number of shares and demand of each bundle group."""
    share = np.array([*bundle_groups.sizes, 0], dtype=np.int64)[bundle_groups.level]
    return [tuple(row) for row in np.column_stack((share, bundle_groups.units, bundle_groups.demand)).tolist()]
