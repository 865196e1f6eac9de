"""Parsers of Slurm's fields: host names, generic and trackable resources, array tasks, constraints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

MAX_HOSTS = 200_000


def expand_hosts(text: str) -> list[str]:
    """Names of a list, in its order; ``n[08-10]`` keeps the width: n08, n09, n10."""
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
    """Return the numbers of ``08-10,12``, as wide as the first of each range."""
    return [f"{number:0{len(item.partition('-')[0])}d}" for item in text.split(",") for number in parse_indices(item)]


_ITEM = re.compile(r"([^,()]+)((?:\([^()]*\))*)(?:,|\Z)")
_COUNT = re.compile(r"([0-9]{1,12})([KMGTP]?)\Z", re.IGNORECASE)
_SCALE = {sign: 1024**power for power, sign in enumerate(("", "K", "M", "G", "T", "P"))}
_NOTHING = ("", "(null)", "N/A", "none")


@dataclass(frozen=True)
class Gres:
    """One resource of a list: its name such as ``gpu`` or ``shard``, type, count, and what stands in parentheses."""

    name: str
    type: str | None
    count: int
    details: str = ""

    @property
    def indices(self) -> str | None:
        """The text of ``(IDX:...)``; None if it is absent or ``N/A``."""
        match = re.search(r"\(IDX:([0-9,\-]+)\)", self.details)
        return match[1] if match else None

    @property
    def socket(self) -> int | None:
        """The socket of ``(S:n)``; None where there is none, or several (``(S:0-1)``, ``(S:0,1)``)."""
        match = re.search(r"\(S:([0-9]{1,3})\)", self.details)
        return int(match[1]) if match else None


def parse_gres(text: str) -> list[Gres]:
    """
    Read a list of generic resources.

    Names, types and counts are separated by ``:`` or ``=``, with or without ``gres/`` or ``gres:`` before. One word
    after the name is the count if it is a number (``gpu:4``), as Slurm reads it, and the type otherwise (``gpu:a100``,
    one of them). Slurm 22.05 writes ``gpu:a100:4(S:0-1)``, ``gres:gpu:4``, ``gpu:a100:2(IDX:0,3)``, ``shard:t4:8``,
    ``gpu:0``; later versions ``gres/gpu:a100:4``, ``shard:a100:1(1/8,-/8)``, ``(CNT:2)``; nothing is an empty text or
    ``(null)``.
    """
    if text.strip() in _NOTHING:
        return []
    items, at = [], 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise ValueError(f"{text[at : at + 60]!r}, expected for example gpu:a100:4")
        items.append(_gres(item[1].strip(), item[2]))
        at = item.end()
    return items


def _gres(body: str, details: str) -> Gres:
    words = re.split("[:=]", re.sub(r"\Agres[/:]", "", body))
    name, rest = words[0], words[1:]
    if rest and (count := _COUNT.match(rest[-1])):
        kind, number = rest[:-1], int(count[1]) * _SCALE[count[2].upper()]
    else:
        kind, number = rest, 1
    if not name or len(kind) > 1 or not all(rest):
        raise ValueError(f"{body[:60]!r}, expected for example gpu:a100:4")
    return Gres(name, kind[0] if kind else None, number, details)


_SIZE = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?([KMGTP]?)n?\Z")
_KIB = {"K": 1, "": 1024, "M": 1024, "G": 1024**2, "T": 1024**3, "P": 1024**4}
"""KiB; a size without a letter is MiB."""
_MIG = re.compile(r"(?:.*_)?[1-9]g\.[0-9]{1,3}gb(?:\+.*)?\Z", re.IGNORECASE)
"""NVIDIA's names of profiles, behind the GPU's own where Slurm has found them itself."""
_COUNTED_ELSEWHERE = re.compile(r"(?:cpu|mem|node|billing|energy|pages|vmem|fs/disk|gres/gpumem|gres/gpuutil)[:=]")
"""Trackable resources that are no request of their own, or that other fields list."""
MOST_NAMED = 1_000_000_000
SHARES_OF_GPUS = ("shard", "mps")
"""Generic resources that are parts of GPUs."""
_WORD = re.compile(r"[A-Za-z0-9_.:=/+\-]+")
MAX_ALTERNATIVES = 64


@dataclass(frozen=True)
class GresRequest:
    """The GPUs of one request field."""

    gpus: int = 0
    models: tuple[str, ...] = ()
    """GPU types, where each GPU has one; empty: any."""
    others: tuple[str, ...] = ()
    """Names of what is not read: parts of GPUs, other resources by type, what is not a generic resource."""
    named: tuple[tuple[str, int], ...] = ()
    """Other generic resources and their counts, as ``gres/nic``."""


@dataclass(frozen=True)
class Tres(GresRequest):
    """Trackable resources of a text such as ``cpu=8,mem=64G,node=2,gres/gpu:a100=4``."""

    cpus: int = 0
    memory_mib: int = 0
    nodes: int = 0


@lru_cache(maxsize=4096)  # the jobs of a cluster have few distinct requests
def parse_tres(text: str) -> Tres:
    """
    Read cpu, mem, node and GPUs, and the names of other resources.

    GPUs are the count without a model where it stands, the sum over models elsewhere. Raises `ValueError` if a count is
    none.
    """
    counts = {"cpu": 0, "mem": 0, "node": 0}
    rest = []
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"{item[:60]!r}, expected NAME=COUNT")
        if key == "mem":
            counts[key] = parse_memory(value)
        elif key in counts:
            if not re.fullmatch(r"[0-9]{1,9}", value):
                raise ValueError(f"{item[:60]!r}, expected a count")
            counts[key] = int(value)
        else:
            rest.append(item)
    gres = parse_gres_request(",".join(rest))
    return Tres(gres.gpus, gres.models, gres.others, gres.named, counts["cpu"], counts["mem"], counts["node"])


@lru_cache(maxsize=4096)
def parse_gres_request(text: str) -> GresRequest:
    """
    Read a request: ``gres/gpu:a100:2``, ``gres:gpu:2``, ``gres/gpu=4``, ``gres:shard:4``; an untyped count is the sum.
    """
    typed: dict[str, int] = {}
    plain = 0
    others: dict[str, None] = {}
    named: dict[str, int] = {}
    for item in filter(None, text.split(",")):
        if _COUNTED_ELSEWHERE.match(item):
            continue
        if not item.startswith(("gres/", "gres:")):
            others[re.split("[:=]", item)[0]] = None
            continue
        for gres in parse_gres(item):
            if gres.name != "gpu" and gres.count and (gres.name in SHARES_OF_GPUS or gres.type is not None):
                others["gres/" + ":".join(filter(None, (gres.name, gres.type)))] = None
            elif gres.name != "gpu":
                named["gres/" + gres.name] = named.get("gres/" + gres.name, 0) + gres.count
            elif gres.type is None:
                plain += gres.count
            elif gres.count:
                typed[gres.type] = typed.get(gres.type, 0) + gres.count
    total = sum(typed.values())
    models = tuple(typed) if total >= plain else ()
    return GresRequest(max(plain, total), models, tuple(others), tuple((name, n) for name, n in named.items() if n))


def named_gres(listed: Iterable[Gres]) -> dict[str, int]:
    """
    Return what becomes named resources, of all types together: generic resources but GPUs and parts of them.

    Those that Slurm never runs out of (``no_consume``) have the largest count; so has any with more.
    """
    named: dict[str, int] = {}
    for gres in listed:
        if gres.name != "gpu" and gres.name not in SHARES_OF_GPUS and gres.count:
            count = MOST_NAMED if gres.type == "no_consume" else gres.count
            named["gres/" + gres.name] = min(MOST_NAMED, named.get("gres/" + gres.name, 0) + count)
    return named


def parse_memory(text: str) -> int:
    """Return MiB, rounded down, of ``512000M``, ``64G``, ``1.5T``; raises ValueError."""
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(f"{text[:60]!r}, expected memory such as 64G")
    fraction = match[2] or ""
    digits = int(match[1] + fraction) * _KIB[match[3]]
    return digits // int(10 ** len(fraction)) // 1024


def is_mig(model: str) -> bool:
    """Return whether a GPU type is a MIG profile, such as ``1g.5gb`` or ``a100_3g.20gb``."""
    return _MIG.match(model) is not None


@dataclass(frozen=True)
class GresHolding:
    """What a job holds on one node."""

    gpus: int = 0
    indices: tuple[int, ...] | None = None
    """None if Slurm does not list them."""
    shared: str | None = None
    """A resource that is a part of GPUs, such as ``shard``, if it holds any."""
    named: tuple[tuple[str, int], ...] = ()
    """Other generic resources, as ``gres/nic``."""


def parse_gres_detail(text: str) -> GresHolding:
    """Read what a job holds on a node: ``gpu:a100:2(IDX:0,3)``, ``gpu:2(CNT:2)``, ``gpu:a100:0(IDX:N/A)``."""
    count, indices, listed, shared = 0, [], True, None
    listed_gres = parse_gres(text)
    for gres in listed_gres:
        if gres.name in SHARES_OF_GPUS and gres.count:
            shared = gres.name
        if gres.name != "gpu" or not gres.count:
            continue
        count += gres.count
        if count > MAX_HOSTS:
            raise ValueError(f"{text[:60]!r}: more than {MAX_HOSTS} GPUs")
        if gres.indices is None:
            listed = False
            continue
        mine = parse_indices(gres.indices)
        if len(mine) != gres.count:
            raise ValueError(f"{text[:60]!r}: {gres.count} GPUs, but {len(mine)} indices")
        indices += mine
    named = tuple(named_gres(gres for gres in listed_gres if gres.type != "no_consume").items())
    return GresHolding(count, tuple(sorted(indices)) if listed else None, shared, named)


def parse_indices(text: str) -> list[int]:
    """Return the numbers of ``0-2,5``; raises ValueError."""
    indices: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?", item)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ValueError(f"{text[:60]!r}, expected numbers and ranges such as 0-2,5")
        numbers = range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1))
        if len(indices) + len(numbers) > MAX_HOSTS:
            raise ValueError(f"{text[:60]!r}: more than {MAX_HOSTS} numbers")
        indices += numbers
    return indices


def parse_tasks(text: str) -> list[int]:
    """Return the tasks of an array, ``1-9:2%4`` or ``1,3,7``; a limit after % and a cut ``...`` are dropped."""
    kept = text.partition("%")[0]
    return parse_indices(kept.removesuffix("...").rstrip(",-"))


Features = frozenset[str]
"""Names that a node must have together."""


@lru_cache(maxsize=4096)
def parse_constraint(text: str) -> tuple[Features, ...] | None:
    """
    Return the alternatives of a constraint on the features of a node; None if it concerns several nodes together.

    ``&`` and ``,`` bind, as Slurm reads them, from the left to the right like ``|``; parentheses go first. Counts
    (``a*2``) and matching sets (``[a|b]``) are about all nodes of a job together. So is, for us, a constraint with more
    than `MAX_ALTERNATIVES`.
    """
    if re.search(r"[\[\]*]", text):
        return None
    try:
        terms, rest = _alternatives(re.findall(r"[&|,()]|[^&|,()\s]+", text))
    except (IndexError, ValueError):
        return None
    return None if rest else terms


def _alternatives(tokens: list[str]) -> tuple[tuple[Features, ...], list[str]]:
    terms, tokens = _operand(tokens)
    while tokens and tokens[0] in ("&", "|", ","):
        sign = tokens[0]
        other, tokens = _operand(tokens[1:])
        terms = (*terms, *other) if sign == "|" else tuple(a | b for a in terms for b in other)
        terms = tuple(dict.fromkeys(terms))
        if len(terms) > MAX_ALTERNATIVES:
            raise ValueError(sign)
    return terms, tokens


def _operand(tokens: list[str]) -> tuple[tuple[Features, ...], list[str]]:
    first = tokens[0]
    if first == "(":
        terms, rest = _alternatives(tokens[1:])
        if rest[0] != ")":
            raise ValueError(first)
        return terms, rest[1:]
    if not _WORD.fullmatch(first):
        raise ValueError(first)
    return (frozenset((first,)),), tokens[1:]
