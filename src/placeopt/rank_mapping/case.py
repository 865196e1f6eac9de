"""One mapping problem as arrays: traffic between tasks, distances between GPUs, and what must stay together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import BadInput, Unsupported
from placeopt.linear import MAX_EXACT
from placeopt.problem import IntArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

MAX_COST = MAX_EXACT // 64
"""2^47: six bits below where float64 counts every integer, for sums and differences of costs."""


@dataclass(frozen=True, eq=False)
class Mapping:
    """
    An order, its cost and a proven bound.

    Of ranks: positions in the list of GPUs, rank r holds ``order[r * g:(r + 1) * g]``; the cost is the sum over pairs
    of GPUs of weight x distance, in link-cost units. Of items: item i stands at place ``order[i]``; the cost is the sum
    over ordered pairs of flow x distance.
    """

    order: IntArray  # (n,)
    cost: int
    bound: int  # no order costs less

    @property
    def optimal(self) -> bool:
        """Whether no order costs less, by proof."""
        return self.cost == self.bound


@dataclass(frozen=True, eq=False)
class MappingProblem:
    """
    ``k`` ranks of ``g`` GPUs each on ``n = k g`` GPUs.

    A *task* is one GPU's worth of a rank: task ``t`` is of rank ``t // g``. An *order* gives every task its GPU: shape
    ``(n,)``, a permutation. All numbers are integers, held in float64 so that matrix products run in BLAS;
    ``make_case`` checks that every sum stays below 2^53, so nothing is ever rounded.
    """

    weights: FloatArray  # (k, k) between ranks, symmetric, zero diagonal
    inside: float  # between the GPUs of a rank
    distances: FloatArray  # (n, n) between GPUs, symmetric, zero diagonal
    groups: IntArray  # (n,) node of every GPU: the GPUs of a rank lie in one
    size: int  # g

    @property
    def num_tasks(self) -> int:
        """Number of tasks, and of GPUs: ``n``."""
        return len(self.distances)

    @cached_property
    def traffic(self) -> FloatArray:
        """Shape (n, n): weights between tasks, zero diagonal."""
        k = len(self.weights)
        between = self.weights + self.inside * np.eye(k)
        out = between.repeat(self.size, axis=0).repeat(self.size, axis=1)
        np.fill_diagonal(out, 0)
        return out

    def cost(self, order: IntArray) -> int:
        """Sum over unordered pairs of tasks of traffic x distance."""
        return round(float((self.traffic * self.distances[np.ix_(order, order)]).sum()) / 2)

    def holds_groups(self, gpus: IntArray) -> bool:
        """Whether these are all GPUs of some groups: no rank lies across their border."""
        return len(gpus) == int(np.isin(self.groups, self.groups[gpus]).sum())

    @cached_property
    def constant(self) -> bool:
        """Whether every order costs the same: all traffic alike, or all distances."""
        if self.num_tasks < 2:
            return True
        off = ~np.eye(self.num_tasks, dtype=bool)
        return len(np.unique(self.traffic[off])) == 1 or len(np.unique(self.distances[off])) == 1


def check_square(name: str, matrix: IntArray) -> None:
    """Raise ``BadInput`` unless a matrix is a square of integers, none below 0."""
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and np.issubdtype(matrix.dtype, np.integer)
    if not square or (matrix < 0).any():
        raise BadInput(f"mapping: {name}: expected a square of integers >= 0, not {matrix.shape} of {matrix.dtype}")


def make_case(
    weights: IntArray, distances: IntArray, groups: IntArray | None = None, *, gpus_per_rank: int = 1, inside: int = 0
) -> MappingProblem:
    """
    Check and convert; see ``map_ranks`` for the arguments.

    Raises ``BadInput`` if a matrix is not square, symmetric and integer with entries >= 0 (and 0 on the diagonal of
    ``distances``), if there are not ``k * gpus_per_rank`` GPUs, or a group whose GPUs are no multiple of
    ``gpus_per_rank``; ``Unsupported`` if costs may reach beyond 2^47.
    """
    if gpus_per_rank < 1 or inside < 0:
        raise BadInput(f"mapping: gpus_per_rank is {gpus_per_rank}, inside is {inside}; expected >= 1 and >= 0")
    for name, matrix in (("weights", weights), ("distances", distances)):
        check_square(name, matrix)
        if (matrix != matrix.T).any():
            raise BadInput(f"mapping: {name} must be symmetric")
    if distances.diagonal().any():
        raise BadInput("mapping: distances must be 0 on the diagonal")
    n = len(weights) * gpus_per_rank
    if len(distances) != n:
        raise BadInput(f"mapping: {len(weights)} ranks x {gpus_per_rank} GPUs on {len(distances)} GPUs, expected {n}")
    groups = np.zeros(n, dtype=np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    if len(groups) != n or (n and (np.bincount(groups) % gpus_per_rank).any()):
        raise BadInput(f"mapping: every group must hold a multiple of {gpus_per_rank} of the {n} GPUs")
    between = weights.astype(np.float64)
    np.fill_diagonal(between, 0)
    case = MappingProblem(between, float(inside), distances.astype(np.float64), groups.astype(np.int64), gpus_per_rank)
    if case.traffic.sum() * case.distances.max(initial=0) > MAX_COST:
        raise Unsupported("mapping: traffic x distance may pass 2^47; divide the weights by a common factor")
    return case
