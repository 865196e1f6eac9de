"""
The random numbers of Go's ``math/rand`` (before its version 2), as far as a published simulation needs them.

Its source is an additive lagged Fibonacci generator, x[n] = x[n - 607] + x[n - 273] modulo 2^64. A seed is spread over
its state by Lehmer's generator (48271, 2^31 - 1) and combined with a table of 607 numbers. That table is the state of
the same generator after 7.8 x 10^12 steps from seed 1. Here it is worked out: x^n modulo x^607 - x^334 - 1 by repeated
squaring says how a state so far on depends on the first one.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np

LENGTH, LAG = 607, 273
STEPS = 7_800_000_000_000
MASK = (1 << 64) - 1


class GoRandom:
    """``rand.New(rand.NewSource(seed))``: ``int63``, ``intn``, ``shuffle`` and ``permutation``."""

    def __init__(self, seed: int) -> None:
        self._state = [a ^ b for a, b in zip(_spread(seed, 40, 20), _table(), strict=True)]
        self._tap, self._feed = 0, LENGTH - LAG

    def uint64(self) -> int:
        """Return the next 64 bits."""
        self._tap = (self._tap - 1) % LENGTH
        self._feed = (self._feed - 1) % LENGTH
        value = (self._state[self._feed] + self._state[self._tap]) & MASK
        self._state[self._feed] = value
        return value

    def int63(self) -> int:
        """Return the next 63 bits."""
        return self.uint64() & (MASK >> 1)

    def intn(self, n: int) -> int:
        """Return a number below ``n`` (up to 2^31 - 1): the remainder of 31 bits, drawn again where uneven."""
        largest = (1 << 31) - 1 - (1 << 31) % n
        while True:
            value = self.int63() >> 32
            if value <= largest:
                return value % n

    def shuffle(self, items: list[object]) -> None:
        """Exchange each item, the last one first, with one up to it, drawn by Lemire's multiplication."""
        for last in range(len(items) - 1, 0, -1):
            other = self._below(last + 1)
            items[last], items[other] = items[other], items[last]

    def permutation(self, n: int) -> list[int]:
        """Return the numbers below ``n`` in random order: each is put in the place of one up to it, which moves up."""
        items = [0] * n
        for last in range(n):
            other = self.intn(last + 1)
            items[last] = items[other]
            items[other] = last
        return items

    def _below(self, n: int) -> int:
        while True:
            product = (self.int63() >> 31) * n
            low = product & 0xFFFFFFFF
            if low >= n or low >= (1 << 32) % n:
                return product >> 32


def _spread(seed: int, high: int, middle: int) -> list[int]:
    """607 numbers from a seed: three of Lehmer's numbers each, the first two shifted so far."""
    value = seed % ((1 << 31) - 1) or 89_482_311
    drawn = []
    for _ in range(20 + 3 * LENGTH):
        value = 48_271 * value % ((1 << 31) - 1)
        drawn.append(value)
    triples = zip(drawn[20::3], drawn[21::3], drawn[22::3], strict=True)
    return [(a << high ^ b << middle ^ c) & MASK for a, b, c in triples]


@cache
def _table() -> tuple[int, ...]:
    """Return the 607 numbers, by their place in the state."""
    place = [(LENGTH - LAG - k - 1) % LENGTH for k in range(-LENGTH, 0)]  # of the k-th last number that was written
    first = _spread(1, 20, 10)
    known = np.array([first[p] for p in place], dtype=np.uint64)
    ahead = np.concatenate([known, np.zeros(LENGTH, dtype=np.uint64)])
    for k in range(LENGTH, 2 * LENGTH):
        ahead[k] = int(ahead[k - LENGTH]) + int(ahead[k - LAG]) & MASK
    power = _power(STEPS)
    late = [int((power * ahead[k : k + LENGTH]).sum(dtype=np.uint64)) for k in range(LENGTH)]
    table = [0] * LENGTH
    for k, value in enumerate(late):
        table[(place[k] - STEPS) % LENGTH] = value
    return tuple(table)


def _power(n: int) -> np.ndarray:
    """Coefficients, modulo 2^64, of x^n modulo x^607 - x^334 - 1."""
    result = np.zeros(LENGTH, dtype=np.uint64)
    result[0] = 1
    for bit in bin(n)[2:]:
        result = _reduced(np.convolve(result, result))
        if bit == "1":
            result = _reduced(np.concatenate([np.zeros(1, dtype=np.uint64), result]))
    return result


def _reduced(polynomial: np.ndarray) -> np.ndarray:
    """Replace x^607 by x^334 + 1, from the top in steps in which nothing returns to what was replaced."""
    for end, start in pairwise([*range(len(polynomial), LENGTH, -LAG), LENGTH]):
        top = polynomial[start:end].copy()
        polynomial[start - LAG : end - LAG] += top
        polynomial[start - LENGTH : end - LENGTH] += top
    return polynomial[:LENGTH]
