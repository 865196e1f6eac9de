"""Robust tabu search for the quadratic assignment problem, several orders side by side in one set of arrays."""

from __future__ import annotations

import time

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import BoolArray, FloatArray

LONGEST_TENURE = 8
"""Tabu tenures are 2 + 8 n u^3 steps, u uniform in 0 to 1 (Taillard's own later program): mostly short, some long."""


class TabuPopulation:
    """
    ``K`` tabu searches over swaps, step by step together: one numpy call serves all, which is what small n needs.

    The cost of an order p is the sum of ``flows[i, j] * distances[p[i], p[j]]`` over all ordered pairs, and of
    ``linear[i, p[i]]`` over all items, (n, n) each; neither matrix need be symmetric, both have zero diagonals.
    ``barred``, (n, n), are pairs of items that are never swapped. ``delta[k, i, j]`` is the exact change of cost of
    search k if i and j are swapped. It is computed once and then updated: after the swap of r and s an entry of two
    others changes by a sum of products (Taillard 1991), the entries of r and s are computed again.
    """

    def __init__(
        self,
        flows: FloatArray,
        distances: FloatArray,
        orders: IntArray,
        rng: np.random.Generator,
        *,
        linear: FloatArray | None = None,
        barred: BoolArray | None = None,
    ) -> None:
        self._rng, self._linear = rng, linear
        self._flows, self._back = flows, np.ascontiguousarray(flows.T)
        self._both = flows + flows.T
        self.orders = orders.copy()  # (K, n)
        self._far = distances[orders[:, :, None], orders[:, None, :]]  # (K, n, n) between the places of the items
        at = flows @ self._far.transpose(0, 2, 1) + flows.T @ self._far  # (K, n, n) cost of i at the place of j
        if linear is not None:
            at += linear[:, orders].transpose(1, 0, 2)
        self._own = at.diagonal(axis1=1, axis2=2).copy()
        self.delta = at + at.transpose(0, 2, 1) - self._own[:, :, None] - self._own[:, None, :]
        self.delta += self._both * (self._far + self._far.transpose(0, 2, 1))
        count, n = orders.shape
        self._barred = np.eye(n, dtype=bool) if barred is None else barred | np.eye(n, dtype=bool)
        self.delta[:, self._barred] = np.inf
        self.costs = (flows * self._far).sum(axis=(1, 2))
        if linear is not None:
            self.costs += linear[np.arange(n), orders].sum(axis=1)
        self.best_costs, self.best_orders = self.costs.copy(), orders.copy()
        self._until = np.zeros((count, n, n))  # item i may not go to the place of j until this step
        self._banned = np.zeros((count, n, n))  # of a swap: the earlier of its two
        self._step = 0

    def run(self, steps: int, *, deadline: float = np.inf, target: float = -np.inf) -> None:
        """
        Make that many swaps in every search: the best that is not banned, or that beats all that it has met.

        Ends before at the deadline, of ``time.monotonic()``, or as soon as one has met the cost ``target``.
        """
        every = np.arange(len(self.orders))
        masked = np.empty_like(self.delta)
        if self._barred.all():
            return
        for _ in range(steps):
            if time.monotonic() >= deadline or self.best_costs.min() <= target:
                return
            self._step += 1
            flat = self.delta.reshape(len(every), -1)
            free = flat.argmin(axis=1)
            np.copyto(masked, self.delta)
            np.copyto(masked, np.inf, where=self._banned > self._step)
            chosen = masked.reshape(flat.shape).argmin(axis=1)
            none_left = np.isinf(masked.reshape(flat.shape)[every, chosen])
            aspired = (self.costs + flat[every, free] < self.best_costs) | none_left
            swap = np.where(aspired, free, chosen)
            self.costs += flat[every, swap]
            self._swap(every, *np.divmod(swap, self.orders.shape[1]))
            better = self.costs < self.best_costs
            if better.any():
                self.best_costs[better], self.best_orders[better] = self.costs[better], self.orders[better]

    def _swap(self, every: IntArray, r: IntArray, s: IntArray) -> None:
        far, flows, back, own = self._far, self._flows, self._back, self._own
        column_flows, column_far = back[r] - back[s], far[every, :, r] - far[every, :, s]
        row_flows, row_far = flows[r] - flows[s], far[every, r] - far[every, s]
        product = column_flows * column_far + row_flows * row_far
        ones = np.ones_like(product)
        left = np.stack([product, ones, -column_flows, -column_far, -row_flows, -row_far], axis=2)
        right = np.stack([ones, product, column_far, column_flows, row_far, row_flows], axis=1)
        self.delta += left @ right
        own -= product
        for array in (far, self._until):
            array[every, :, r], array[every, :, s] = array[every, :, s], array[every, :, r]
        far[every, r], far[every, s] = far[every, s], far[every, r]
        self.orders[every, r], self.orders[every, s] = self.orders[every, s], self.orders[every, r]
        for item in (r, s):
            own[every, item] = (flows[item] * far[every, item] + back[item] * far[every, :, item]).sum(axis=1)
            if self._linear is not None:
                own[every, item] += self._linear[item, self.orders[every, item]]
        tenures = 2 + self._rng.random((2, len(every))) ** 3 * LONGEST_TENURE * self.orders.shape[1]
        self._until[every, r, s], self._until[every, s, r] = self._step + tenures
        for item in (r, s):
            row, column = far[every, item], far[every, :, item]
            new = (far @ flows[item][:, :, None] + far.transpose(0, 2, 1) @ back[item][:, :, None])[:, :, 0]
            new += row @ flows.T + column @ flows - own - own[every, item][:, None] + self._both[item] * (row + column)
            if self._linear is not None:
                new += self._linear[item[:, None], self.orders] + self._linear[:, self.orders[every, item]].T
            new[self._barred[item]] = np.inf
            self.delta[every, item] = self.delta[every, :, item] = new
            banned = np.minimum(self._until[every, item], self._until[every, :, item])
            self._banned[every, item] = self._banned[every, :, item] = banned
