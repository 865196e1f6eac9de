"""Prices of bundles that a round leaves for the next one."""

from __future__ import annotations

from placeopt.formulations.fillings.groups import BundleGroups
from placeopt.problem import IntArray


class CarriedPrices:
    """
    Prices of bundle groups from earlier rounds, by what a bundle asks for.

    Any prices prove a bound, so these need no check: after few changes they are close to the best ones.
    """

    def __init__(self) -> None:
        self._worth: dict[tuple[int, ...], float] = {}

    def keep(self, bundle_groups: BundleGroups, price: IntArray, scale: int) -> None:
        """Keep prices, (D,), in 1 / ``scale`` of a value, in the place of all earlier ones."""
        self._worth = dict(zip(_keys(bundle_groups), (price / scale).tolist(), strict=True))

    def put_into(self, bundle_groups: BundleGroups, price: IntArray, scale: int) -> int:
        """Replace prices, (D,), by those that are kept; returns how many bundle groups have one."""
        known = 0
        for k, key in enumerate(_keys(bundle_groups)):
            worth = self._worth.get(key)
            if worth is not None:
                price[k] = round(min(worth * scale, 2.0**61))
                known += 1
        return known


def _keys(bundle_groups: BundleGroups) -> list[tuple[int, ...]]:
    """Share, number of GPUs and demand of each bundle group."""
    rows = zip(bundle_groups.milli.tolist(), bundle_groups.gpus.tolist(), bundle_groups.demand.tolist(), strict=True)
    return [(milli, gpus, *demand) for milli, gpus, demand in rows]
