"""Blocks found in a matrix of distances: they give the distances back."""

import numpy as np
import pytest

from helpers.graphs import random_distances
from placeopt.rank_mapping.case import FloatArray
from placeopt.rank_mapping.hierarchy import Block, hierarchy, tables_of


def rebuilt(block: Block, distances: FloatArray, out: FloatArray) -> dict[int, float]:
    """Fill ``out`` from the hierarchy; return each member's way to the block's centre."""
    if not block.children:
        for p in block.members:
            for q in block.members:
                out[p, q] = distances[p, q]
        return dict(zip(block.members, block.outside or (0.0,), strict=True))
    ways: dict[int, float] = {}
    for child in block.children:
        below = {p: way + child.weight for p, way in rebuilt(child, distances, out).items()}
        for p, way in below.items():
            for q, other in ways.items():
                out[p, q] = out[q, p] = way + other
        ways |= below
    return ways


@pytest.mark.parametrize("kind", ["tree", "nodes", "any"])
def test_blocks_give_the_distances_back(kind: str) -> None:
    """The exact methods and the bound read distances from the hierarchy only."""
    rng = np.random.default_rng(len(kind))
    for _ in range(60):
        n = int(rng.integers(1, 13))
        groups = np.unique(rng.integers(0, 4, n), return_inverse=True)[1]
        distances = random_distances(rng, kind, groups).astype(float)
        root = hierarchy(distances, groups)
        out = np.zeros_like(distances)
        rebuilt(root, distances, out)
        assert sorted(root.members) == list(range(n))
        assert (out == distances).all()


def test_trees_have_no_tables() -> None:
    """On the metric of a tree every block is a star, so 16 GPUs are solved without listing arrangements."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(2, 16))
        groups = np.zeros(n, dtype=np.int64)
        assert not tables_of(hierarchy(random_distances(rng, "tree", groups).astype(float), groups))
