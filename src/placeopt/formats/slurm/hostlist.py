"""Slurm's lists of host names: ``srv[1101-1108,1200],login1``, any number of brackets in a name."""

import re
from itertools import product

MAX_HOSTS = 200_000

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?\Z")


def expand_hosts(text: str) -> list[str]:
    """
    Names of a list, in its order; ``n[08-10]`` keeps the width: n08, n09, n10.

    Raises
    ------
    ValueError
        If a bracket is malformed, or there are more than ``MAX_HOSTS`` names.
    """
    names: list[str] = []
    for item in _items(text):
        pieces: list[list[str]] = []
        size = 1
        for literal, ranges in re.findall(r"([^\[\]]+)|\[([^\[\]]*)\]", item):
            piece = [literal] if literal else _ranges(ranges)
            size *= len(piece)
            if size + len(names) > MAX_HOSTS:
                raise ValueError(f"more than {MAX_HOSTS} names")
            pieces.append(piece)
        names += ["".join(parts) for parts in product(*pieces)]
    return names


def _items(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    items, depth, start = [], 0, 0
    for i, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if depth not in (0, 1):
            raise ValueError(f"brackets do not match in {text[:60]!r}")
        if sign == "," and depth == 0:
            items.append(text[start:i])
            start = i + 1
    if depth:
        raise ValueError(f"brackets do not match in {text[:60]!r}")
    return [item for item in (*items, text[start:]) if item]


def _ranges(text: str) -> list[str]:
    numbers: list[str] = []
    for item in text.split(","):
        match = _RANGE.match(item)
        if match is None:
            raise ValueError(f"[{text[:60]}]: expected numbers and ranges such as 01-08")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first) or int(last) - int(first) >= MAX_HOSTS:
            raise ValueError(f"[{text[:60]}]: a range goes up, and has at most {MAX_HOSTS} numbers")
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return numbers
