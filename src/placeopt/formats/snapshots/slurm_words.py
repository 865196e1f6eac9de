"""The small languages inside Slurm's fields: trackable resources, generic resources, array tasks, constraints."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from placeopt.formats.topo.hostlist import MAX_HOSTS

_SIZE = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?([KMGTP]?)n?\Z")
_SCALE = {"K": 1, "": 1024, "M": 1024, "G": 1024**2, "T": 1024**3, "P": 1024**4}
"""KiB; a size without a letter is MiB."""
_GPU_TRES = re.compile(r"gres[/:]gpu(?:[:=]([^:=,]*[A-Za-z][^:=,]*))?(?:[:=]([0-9]{1,9}))?\Z")
_MIG = re.compile(r"(?:.*_)?[1-9]g\.[0-9]{1,3}gb(?:\+.*)?\Z", re.IGNORECASE)
"""NVIDIA's names of profiles, behind the GPU's own where Slurm has found them itself."""
_HELD = re.compile(r"gpu(?::([^:(),]+))?:([0-9]{1,6})(?:\(IDX:([0-9,\-]+|N/A)\))?")
_WORD = re.compile(r"[A-Za-z0-9_.:=/+\-]+")


@dataclass(frozen=True)
class Tres:
    """Trackable resources as ``cpu=8,mem=64G,node=2,gres/gpu:a100=4`` tells them."""

    cpus: int = 0
    memory_mib: int = 0
    nodes: int = 0
    gpus: int = 0
    model: str | None = None


def parse_tres(text: str) -> Tres:
    """
    Read cpu, mem, node and GPUs; what else stands there is passed over.

    GPUs are the count without a model where it stands, the sum over models elsewhere; the model is told only where it
    is one.

    Raises
    ------
    ValueError
        If a count is none.
    """
    cpus = memory = nodes = 0
    plain: int | None = None
    models: dict[str, int] = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"{item[:60]!r}, expected NAME=COUNT")
        if key == "mem":
            memory = parse_memory(value)
        elif key in ("cpu", "node", "gres/gpu") or key.startswith("gres/gpu:"):
            if not re.fullmatch(r"[0-9]{1,9}", value):
                raise ValueError(f"{item[:60]!r}, expected a count")
            count = int(value)
            if key == "cpu":
                cpus = count
            elif key == "node":
                nodes = count
            elif key == "gres/gpu":
                plain = count
            else:
                models[key.removeprefix("gres/gpu:")] = count
    model = next(iter(models)) if len(models) == 1 else None
    return Tres(cpus, memory, nodes, sum(models.values()) if plain is None else plain, model)


def parse_memory(text: str) -> int:
    """Return MiB, rounded down, of ``512000M``, ``64G``, ``1.5T``; raises ValueError."""
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(f"{text[:60]!r}, expected memory such as 64G")
    fraction = match[2] or ""
    digits = int(match[1] + fraction) * _SCALE[match[3]]
    return digits // int(10 ** len(fraction)) // 1024


def parse_gpus(text: str) -> tuple[int, tuple[str, ...]]:
    """
    Return count and models of a request: ``gres/gpu:a100:2``, ``gres:gpu:2``, ``gres/gpu=4``; other resources count 0.

    Of several models in one request the counts are added.

    Raises
    ------
    ValueError
        If a GPU request cannot be read.
    """
    found: list[tuple[int, str | None]] = []
    for item in filter(None, text.split(",")):
        if not re.match(r"gres[/:]gpu(?:[:=]|\Z)", item):
            continue
        match = _GPU_TRES.match(item)
        if match is None:
            raise ValueError(f"{item[:60]!r}, expected such as gres/gpu:a100:2")
        found.append((int(match[2] or 1), match[1]))
    models = tuple(model for _, model in found if model)
    return sum(count for count, _ in found), models if len(models) == len(found) else ()


def is_mig(model: str) -> bool:
    """Tell whether a type of GPUs is a MIG profile, such as ``1g.5gb`` or ``a100_3g.20gb``."""
    return _MIG.match(model) is not None


def parse_held(text: str) -> tuple[int, tuple[int, ...] | None, str | None]:
    """
    Return count, indices and model of what a job holds on a node: ``gpu:a100:2(IDX:0,3)``; indices None if not told.

    Raises
    ------
    ValueError
        If indices and count do not agree.
    """
    count, indices, models, told = 0, [], set(), True
    for model, number, idx in _HELD.findall(text):
        count += int(number)
        if not int(number):
            continue
        models.add(model or None)
        if not idx or idx == "N/A":
            told = False
            continue
        mine = parse_indices(idx)
        if len(mine) != int(number):
            raise ValueError(f"{text[:60]!r}: {number} GPUs, but {len(mine)} indices")
        indices += mine
    return count, tuple(sorted(indices)) if told else None, models.pop() if len(models) == 1 else None


def parse_indices(text: str) -> list[int]:
    """Return the numbers of ``0-2,5``; raises ValueError."""
    found: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?", item)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ValueError(f"{text[:60]!r}, expected numbers and ranges such as 0-2,5")
        numbers = range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1))
        if len(found) + len(numbers) > MAX_HOSTS:
            raise ValueError(f"{text[:60]!r}: more than {MAX_HOSTS} numbers")
        found += numbers
    return found


def parse_tasks(text: str) -> list[int]:
    """Return the tasks of an array, ``1-9:2%4`` or ``1,3,7``; a limit after % and a cut ``...`` are dropped."""
    kept = text.partition("%")[0]
    return parse_indices(kept.removesuffix("...").rstrip(",-"))


def parse_constraint(text: str) -> Callable[[Collection[str]], bool] | None:
    """
    Return what tells whether a node with these features meets a constraint; None for what is about several nodes.

    ``&`` and ``,`` bind, as Slurm reads them, from the left to the right like ``|``; parentheses go first. Counts
    (``a*2``) and matching sets (``[a|b]``) are about all nodes of a job together.
    """
    if re.search(r"[\[\]*]", text):
        return None
    tokens = re.findall(r"[&|,()]|[^&|,()\s]+", text)
    try:
        held, rest = _expression(tokens)
    except (IndexError, ValueError):
        return None
    return None if rest else held


def _expression(tokens: list[str]) -> tuple[Callable[[Collection[str]], bool], list[str]]:
    held, tokens = _operand(tokens)
    while tokens and tokens[0] in ("&", "|", ","):
        sign = tokens[0]
        other, tokens = _operand(tokens[1:])
        held = _joined(held, other, either=sign == "|")
    return held, tokens


def _operand(tokens: list[str]) -> tuple[Callable[[Collection[str]], bool], list[str]]:
    first = tokens[0]
    if first == "(":
        held, rest = _expression(tokens[1:])
        if rest[0] != ")":
            raise ValueError(first)
        return held, rest[1:]
    if not _WORD.fullmatch(first):
        raise ValueError(first)
    return lambda features: first in features, tokens[1:]


def _joined(
    a: Callable[[Collection[str]], bool], b: Callable[[Collection[str]], bool], *, either: bool
) -> Callable[[Collection[str]], bool]:
    if either:
        return lambda features: a(features) or b(features)
    return lambda features: a(features) and b(features)
