"""
Write the quadratic assignment problems of ``instances/qap/`` and their list.

    python bench/instances/make_qap.py

All are made here: none is copied. ``tai..a`` follow the generator of Taillard (1991), with seeds that make them equal
to QAPLIB's of that name; ``grid`` has Manhattan distances between the cells of a grid, as Nugent, Vollmann and Ruml
(1968) built theirs, with flows drawn here; ``cube`` has the Hamming distances of a hypercube, with a binary tree, or a
ring, whose optimum is known by construction; ``drawn`` is asymmetric, with linear costs on both diagonals. Diagonals
of the others are 0. The same bytes every time. What is known without a search enters ``best.solu``: optima of tiny
problems by enumeration, of rings by construction, of ``tai..a`` by QAPLIB.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from placeopt.benchmark.solu import Known, read_solu, write_solu

ROOT = Path(__file__).resolve().parents[2]
Matrix = NDArray[np.int64]

FLOW_SEED = 123456789
DISTANCE_SEEDS = {12: 792100592, 15: 1665697315, 17: 290326494, 20: 261789203, 25: 162518201, 30: 1217840750}
DISTANCE_SEEDS |= {35: 1304540207, 40: 1364951216}
"""Of tai<n>a; found by trying all 2^31 states against the files."""
OPTIMA = {12: 224_416, 15: 388_214, 17: 491_812, 20: 703_482}
"""Of tai<n>a, by QAPLIB."""
GRIDS = ((2, 3), (2, 4), (3, 4), (4, 5), (5, 6))
CUBES = (3, 4, 5)
DRAWN = (6, 8, 12, 20)
TINY = 8
"""Largest n whose optimum is found by enumeration."""


def main() -> None:
    """Write the problems and the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "instances", help="folder to write to (default: instances/)")
    folder = parser.parse_args().out
    (folder / "qap").mkdir(parents=True, exist_ok=True)
    names, known = [], read_solu(folder / "best.solu")
    for name, flows, distances in problems():
        optimum = optimum_of(name, flows, distances)
        if optimum is not None:
            known[name] = known.get(name, Known()).improved(optimum[0], optimum[0], "min", by=optimum[1])
        (folder / "qap" / f"{name}.dat").write_text(text(flows, distances))
        names.append(f"qap/{name}.dat\n")
    (folder / "qap.test").write_text("".join(names))
    write_solu(folder / "best.solu", known)


def problems() -> Iterator[tuple[str, Matrix, Matrix]]:
    """Yield names, flows and distances."""
    for rows, columns in GRIDS:
        cells = np.argwhere(np.ones((rows, columns)))
        manhattan = np.abs(cells[:, None] - cells).sum(axis=2)
        yield f"grid{rows}x{columns}", grid_flows(len(cells)), manhattan
    for dimension in CUBES:
        n = 2**dimension
        corners = np.arange(n)
        hamming = np.array([[(a ^ b).bit_count() for b in corners.tolist()] for a in corners.tolist()])
        yield f"cube{dimension}-tree", edges(n, [((i - 1) // 2, i) for i in range(1, n)]), hamming
        yield f"cube{dimension}-ring", edges(n, [(i, (i + 1) % n) for i in range(n)]), hamming
    for n in DRAWN:
        draw = random.Random(n)
        flows, distances = (np.array([[draw.randrange(100) for _ in range(n)] for _ in range(n)]) for _ in range(2))
        yield f"drawn{n}", flows, distances
    for n in OPTIMA:
        yield f"tai{n}a", taillard(n, DISTANCE_SEEDS[n]), taillard(n, FLOW_SEED)


def grid_flows(n: int) -> Matrix:
    """Return symmetric flows of 0 to 10, a third of them 0, drawn with seed n."""
    draw = random.Random(n)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    return edges(n, pairs, [draw.randint(1, 10) if draw.random() < 2 / 3 else 0 for _ in pairs])


def edges(n: int, pairs: list[tuple[int, int]], weights: list[int] | None = None) -> Matrix:
    """Return the symmetric matrix of weighted edges, weights 1 if left out."""
    out = np.zeros((n, n), dtype=np.int64)
    for (i, j), weight in zip(pairs, weights or [1] * len(pairs), strict=True):
        out[i, j] = out[j, i] = weight
    return out


def taillard(n: int, seed: int) -> Matrix:
    """Return a symmetric matrix of 0 to 99 by the generator of Taillard (1991): x -> 16807 x mod 2^31 - 1."""
    out, state, modulus = np.zeros((n, n), dtype=np.int64), seed, 2**31 - 1
    for i in range(n):
        for j in range(i + 1, n):
            state = state * 16807 % modulus
            out[i, j] = out[j, i] = state * 100 // modulus
    return out


def optimum_of(name: str, flows: Matrix, distances: Matrix) -> tuple[int, str] | None:
    """Return the optimum and how it is known; None where only a search can tell."""
    n = len(flows)
    if name.startswith("tai"):
        return OPTIMA[n], "QAPLIB (Burkard, Karisch, Rendl 1997)"
    if name.endswith("-ring"):  # along a Gray code all neighbours of the ring are at distance 1
        return 2 * n, "by construction"
    return (enumerated(flows, distances), "by enumeration, bench/instances/make_qap.py") if n <= TINY else None


def enumerated(flows: Matrix, distances: Matrix) -> int:
    """Return the optimum, by trying all orders."""
    orders = np.array(list(permutations(range(len(flows)))))
    return int((flows * distances[orders[:, :, None], orders[:, None, :]]).sum(axis=(1, 2)).min())


def text(flows: Matrix, distances: Matrix) -> str:
    """Return the form of QAPLIB: n, then both matrices."""
    blocks = ["\n".join(" ".join(map(str, row)) for row in matrix.tolist()) for matrix in (flows, distances)]
    return f"{len(flows)}\n\n" + "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    main()
