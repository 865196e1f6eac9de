"""Parsers of Slurm's fields: host names, generic and trackable resources, array tasks, constraints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain, product

from placeopt.model.base import MAX_AMOUNT, MAX_GPUS

MAX_HOSTS = 200_000


def expand_hosts(text: str) -> list[str]:
    """Names of a list, in its order; ``n[08-10]`` keeps the width: n08, n09, n10."""
    if re.search(r"[\[\]]", re.sub(r"\[[^\[\]]*\]", "", text)):
        raise ValueError(f"brackets do not match in {text[:60]!r}")
    names: list[str] = []
    for item in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text):
        pieces: list[list[str]] = []
        size = 1
        for literal, ranges in re.findall(r"([^\[\]]+)|\[([^\[\]]*)\]", item):
            piece = [literal] if literal else _ranges(ranges)
            size *= len(piece)
            if size + len(names) > MAX_HOSTS:
                raise ValueError(f"more than {MAX_HOSTS} names")
            pieces.append(piece)
        names += map("".join, product(*pieces))
    return names


def _ranges(text: str) -> list[str]:
    """Return the numbers of ``08-10,12``, as wide as the first of each range."""
    return [f"{number:0{len(item.partition('-')[0])}d}" for item in text.split(",") for number in parse_indices(item)]


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
    return parse_indices(text.partition("%")[0].removesuffix("...").rstrip(",-"))


_UNITS = "KMGTP"
_GRES = re.compile(
    r"\s*(?:gres[/:])?([^,():=\s]+)(?:[:=]([^,():=\s]+))??(?:[:=]([0-9]{1,12})([KMGTP]?))?\s*((?:\([^()]*\))*)(?:,|\Z)",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?:([0-9]{1,6})-)?([0-9]{1,9})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?(?:(?<=:[0-9][0-9])(\.[0-9]{1,6}))?"
)
_SIZE = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?([KMGTP]?)n?\Z")
_MIG = re.compile(r"(?:.*_)?[1-9]g\.[0-9]{1,3}gb(?:\+.*)?\Z", re.IGNORECASE)
"""NVIDIA's names of profiles, behind the GPU's own where Slurm has found them itself."""
_COUNTED_ELSEWHERE = re.compile(r"(?:cpu|mem|node|billing|energy|pages|vmem|fs/disk|gres/gpumem|gres/gpuutil)[:=]")
"""Trackable resources that are no request of their own, or that other fields list."""
SHARES_OF_GPUS = frozenset(("gres/shard", "gres/mps"))
"""Generic resources that are parts of GPUs."""


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
    def shared(self) -> list[int]:
        """The GPUs of which it is a part: ``(IDX:0)``, or those in use of ``(2/4,-/4,0/4)``."""
        uses = re.findall(r"([0-9]+|-)/[0-9]+", self.details)
        return [gpu for gpu, used in enumerate(uses) if used.strip("-0")] or parse_indices(self.indices or "")

    @property
    def socket(self) -> int | None:
        """The socket of ``(S:n)``; None where there is none, or several (``(S:0-1)``, ``(S:0,1)``)."""
        match = re.search(r"\(S:([0-9]{1,3})\)", self.details)
        return int(match[1]) if match else None


@dataclass(frozen=True)
class Tres:
    """What a text of resources lists together, requested or held."""

    gpus: int = 0
    models: tuple[str, ...] = ()
    """GPU types, where each GPU has one; empty: any."""
    named: tuple[tuple[str, int], ...] = ()
    """Other generic resources and their counts, as ``gres/nic``; parts of GPUs too, as ``gres/shard``."""
    others: tuple[str, ...] = ()
    """Names of what is not read: other resources by type, what is not a generic resource."""
    cpus: int = 0
    memory_mib: int = 0
    nodes: int = 0
    indices: tuple[int, ...] | None = ()
    """Of the GPUs; None if Slurm does not list them."""

    @property
    def shares(self) -> list[tuple[str, int]]:
        """The named resources that are parts of GPUs."""
        return [(name, count) for name, count in self.named if name in SHARES_OF_GPUS]


def parse_gres(text: str) -> list[Gres]:
    """
    Read a list of generic resources.

    Names, types and counts are separated by ``:`` or ``=``, with or without ``gres/`` or ``gres:`` before. One word
    after the name is the count if it is a number (``gpu:4``), as Slurm reads it, and the type otherwise (``gpu:a100``,
    one of them). Slurm 22.05 writes ``gpu:a100:4(S:0-1)``, ``gres:gpu:4``, ``gpu:a100:2(IDX:0,3)``, ``shard:t4:8``,
    ``gpu:0``; later versions ``gres/gpu:a100:4``, ``shard:a100:1(1/8,-/8)``, ``(CNT:2)``; nothing is an empty text or
    ``(null)``. Raises `ValueError` for anything else.
    """
    items, at = [], 0
    while at < len(text) and text.strip() not in ("(null)", "N/A", "none"):
        item = _GRES.match(text, at)
        if item is None:
            raise ValueError(f"{text[at : at + 60]!r}, expected for example gpu:a100:4")
        name, kind, count, unit, details = item.groups()
        size = 1024 ** (_UNITS.find(unit.upper() or "-") + 1) if unit else 1
        items.append(Gres(name, kind, int(count) * size if count else 1, details))
        at = item.end()
    return items


@lru_cache(maxsize=4096)  # the jobs of a cluster have few distinct requests
def parse_tres(text: str) -> Tres:
    """
    Read trackable resources, such as ``cpu=8,mem=64G,node=2,gres/gpu:a100=4``, or a request: ``gres:gpu:a100:2``.

    A count without a model is the sum over all models. Raises `ValueError` if a count is none.
    """
    amounts = {"cpu": 0, "mem": 0, "node": 0}
    gpus, named, others = Counter[str | None](), Counter[str](), dict[str, None]()
    for item in filter(None, text.split(",")):
        key, _, value = item.partition("=")
        if key in amounts:
            if key != "mem" and not re.fullmatch(r"[0-9]{1,9}", value):
                raise ValueError(f"{item[:60]!r}, expected NAME=COUNT")
            amounts[key] = parse_memory(value) if key == "mem" else int(value)
        elif _COUNTED_ELSEWHERE.match(item):
            continue
        elif not item.startswith(("gres/", "gres:")):
            others[re.split("[:=]", item)[0]] = None
        else:
            (gres,) = parse_gres(item)
            if gres.name == "gpu":
                gpus[gres.type] += gres.count
            elif gres.count and gres.type is not None:
                others[f"gres/{gres.name}:{gres.type}"] = None
            else:
                named["gres/" + gres.name] += gres.count
    plain, typed = gpus.pop(None, 0), +gpus
    models = tuple(filter(None, typed)) if typed.total() >= plain else ()
    cpus, memory_mib, nodes = amounts.values()
    return Tres(max(plain, typed.total()), models, tuple((+named).items()), tuple(others), cpus, memory_mib, nodes)


def named_gres(listed: Iterable[Gres]) -> dict[str, int]:
    """
    Return what becomes named resources, of all types together: generic resources but GPUs.

    Those that Slurm never runs out of (``no_consume``) have the largest count; so has any with more.
    """
    named: dict[str, int] = {}
    for gres in listed:
        if gres.name != "gpu" and gres.count:
            count = MAX_AMOUNT if gres.type == "no_consume" else gres.count
            named["gres/" + gres.name] = min(MAX_AMOUNT, named.get("gres/" + gres.name, 0) + count)
    return named


def parse_gres_detail(text: str) -> Tres:
    """Read what a job holds on a node: ``gpu:a100:2(IDX:0,3)``, ``gpu:2(CNT:2)``, ``gpu:a100:0(IDX:N/A)``."""
    listed = [gres for gres in parse_gres(text) if gres.count]
    gpus = [gres for gres in listed if gres.name == "gpu"]
    parts = [gres for gres in listed if "gres/" + gres.name in SHARES_OF_GPUS]
    indices = [parse_indices(gres.indices) for gres in gpus if gres.indices is not None]
    told = [gres.count for gres in gpus if gres.indices is not None]
    if [len(own) for own in indices] != told:
        raise ValueError(f"{text[:60]!r}: {told} GPUs, but not as many indices")
    count, known = sum(gres.count for gres in gpus), sorted(chain(*indices, *(gres.shared for gres in parts)))
    if max([count, *(gpu + 1 for gpu in known)]) > MAX_GPUS:
        raise ValueError(f"{text[:60]!r}: more than {MAX_GPUS} GPUs")
    return Tres(
        gpus=count + len(parts),
        named=tuple(named_gres(gres for gres in listed if gres.type != "no_consume").items()),
        indices=tuple(known) if len(indices) == len(gpus) else None,
    )


def gpu_milli(parts: int, of: int) -> int:
    """Return how many thousandths of a GPU some of its ``of`` parts are; 0 where they are none, or not of one GPU."""
    milli, rest = divmod(1000 * parts, of or 1)
    return 0 if rest or milli > 1000 or not of else milli


def parse_memory(text: str) -> int:
    """Return MiB, rounded down, of ``512000M``, ``64G``, ``1.5T``; without a letter MiB. Raises ValueError."""
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(f"{text[:60]!r}, expected memory such as 64G")
    whole, fraction, unit = match[1], match[2] or "", match[3] or "M"
    size: int = int(whole + fraction) * 1024 ** (_UNITS.index(unit) + 1)
    return size // int(10 ** len(fraction)) // 2**20


def parse_time_ms(text: str) -> Fraction:
    """Return ms of ``[days-]hours:minutes:seconds``, ``days-hours[:minutes]``, ``minutes[:seconds]``."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:60]!r}, expected a time such as 01:00:00")
    days, first, second, third = (int(part or 0) for part in match.groups()[:4])
    units = (3600, 60, 1) if match[1] is not None or match[4] is not None else (60, 1, 0)
    whole = 86_400 * days + first * units[0] + second * units[1] + third * units[2]
    return 1000 * (whole + Fraction(match[5] or 0))


def is_mig(model: str) -> bool:
    """Return whether a GPU type is a MIG profile, such as ``1g.5gb`` or ``a100_3g.20gb``."""
    return _MIG.match(model) is not None


_WORD = re.compile(r"[A-Za-z0-9_.:=/+\-]{1,200}")
MAX_ALTERNATIVES = 64
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
    if re.search(r"[\[\]*]", text) or text.count("(") > MAX_ALTERNATIVES:
        return None
    tokens = re.findall(r"[&|,()]|[^&|,()\s]+", text)[::-1]
    try:
        terms = _alternatives(tokens)
    except (IndexError, ValueError):
        return None
    return None if tokens else terms


def _alternatives(tokens: list[str]) -> tuple[Features, ...]:
    """Return what the last tokens state, the last of which comes first; takes those that it reads."""
    terms: tuple[Features, ...] = (Features(),)
    sign = "&"
    while True:
        word = tokens.pop()
        other = _alternatives(tokens) if word == "(" else (Features((word,)),)
        if (tokens.pop() != ")") if word == "(" else not _WORD.fullmatch(word):
            raise ValueError(word)
        joined = (*terms, *other) if sign == "|" else tuple(a | b for a in terms for b in other)
        terms = tuple(dict.fromkeys(joined))
        if len(terms) > MAX_ALTERNATIVES:
            raise ValueError(sign)
        if not tokens or tokens[-1] not in ("&", "|", ","):
            return terms
        sign = tokens.pop()
