"""Random numbers that are the same compiled or not: xorshift128 on words of 32 bits (Marsaglia 2003, section 4)."""

from __future__ import annotations

from placeopt.search.state import State


def draw(s: State) -> int:
    """Return a number from 0 to 2^32 - 1."""
    first, last = s.words[0], s.words[3]
    first ^= (first & 0x1FFFFF) << 11  # 32 bits
    s.words[0] = s.words[1]
    s.words[1] = s.words[2]
    s.words[2] = last
    last ^= (last >> 19) ^ first ^ (first >> 8)
    s.words[3] = last
    return last


def below(s: State, end: int) -> int:
    """Return a number from 0 to ``end`` - 1; ``end`` is from 1 to 2^31."""
    return draw(s) * end >> 32
