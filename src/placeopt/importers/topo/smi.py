"""
Tables of connections between GPUs: ``nvidia-smi topo -m``, ``amd-smi topology`` and ``rocm-smi --showtopo``.

The legend of nvidia-smi, from near to far, and what becomes of it:

``NV#``   a direct link of # lanes; hides how the pair is connected over PCIe
``PIX``   at most one PCIe bridge: one switch
``PXB``   several PCIe bridges: different switches below one upper switch
``PHB``   the same host bridge: a part of its own only where a farther pair shares its socket
``NODE``  different host bridges of one NUMA domain: likewise
``SYS``   across NUMA domains (``SOC`` in old drivers), or not known to the driver

A level that occurs anywhere becomes a layer for all GPUs, so that a farther pair never comes out nearer. Network cards
take part in the grouping, then go: two GPUs that are both PIX to one card share its switch, also where their own entry
is NV#.
"""

import re
from itertools import combinations
from typing import NamedTuple

from networkx.utils import UnionFind

from placeopt.importers.source_file import SourceFile
from placeopt.importers.topo.host import MAX_GPUS, Host, HostGpu, cpu_list
from placeopt.model import Link

NEAR_TO_FAR = ("PIX", "PXB", "PHB", "NODE", "SYS")
HOP_WEIGHT = 15
"""Weight of one XGMI hop in the Linux kernel's amdkfd (``kfd_crat.h``); two hops weigh twice as much."""

_NAME = re.compile(r"(GPU|NIC)\d{1,4}\Z|(mlx|bnxt|hfi|qedr|irdma|efa|i40iw|cxgb|hns)\w{0,20}\Z")
NVIDIA_HEADER = re.compile(r"GPU0\b.*\bCPU\b|GPU0\s+(GPU|NIC|mlx)\w+")
_NVIDIA = re.compile(rf"(NV([1-9]|[1-5]\d|6[0-4])|{'|'.join(NEAR_TO_FAR)})\Z")
_AMD_CODE = re.compile(r"(XGMI|PCIE)\Z")
AMD_TITLE = re.compile(r".*(ROCm System Management Interface|ROCm SMI|Link Type between two GPUs|LINK TYPE TABLE:)")
_TITLE = re.compile(
    r"=*\s*(Weight|Link Type|Bandwidth)(?: between two GPUs)?\s*=+\Z|(WEIGHT|LINK TYPE|NUMA BW) TABLE:\Z"
)
_NUMA = re.compile(r"GPU\[(\d{1,4})\]\s*: \(Topology\) Numa Node: (\d{1,4})\Z")


class _Table(NamedTuple):
    """A square table; rows in the order of the columns."""

    names: list[str]
    codes: list[list[str]]
    rest: list[list[str]]
    """What stands behind the entries of each row."""
    lines: list[int]


def read_nvidia_smi(source: SourceFile) -> Host:
    """
    Return the host. The matrix states neither models nor memory; CPUs are all those of the affinities.

    Sockets are the NUMA domains of the affinities, also where the driver calls a pair of one domain SYS. Where no
    domain is named, or nearer pairs have different ones, the matrix alone defines the sockets. Raises `BadInput` if the
    matrix is incomplete, not symmetric, or contradicts itself.
    """
    heads = [n for n, line in enumerate(source.lines) if NVIDIA_HEADER.match(line)]
    if len(heads) > 1:
        raise source.bad(heads[1] + 1, "a second matrix; give the output of one machine")
    words = source.lines[heads[0]].split()
    size = next((i for i, word in enumerate(words) if not _NAME.match(word)), len(words))
    table = _table(source, heads[0], words[:size])
    codes = [["SYS" if code == "SOC" else code for code in row] for row in table.codes]
    table = table._replace(codes=codes)
    _check(source, table, _NVIDIA, f"X, NV#, {', '.join(NEAR_TO_FAR)}")
    gpus = [i for i, name in enumerate(table.names) if name.startswith("GPU")]
    classes = _classes(source, table)
    cpus = [rest[0] if rest else "" for rest in table.rest]
    numas = [rest[1] if len(rest) > 1 else "" for rest in table.rest]
    places = _places(codes, gpus, classes["NODE"], cpus, numas)
    occurring = {code for row in codes for code in row}
    far_inside = any(places[a] == places[b] and codes[a][b] == "SYS" for a in gpus for b in gpus)
    layers = {
        "NODE": far_inside and "NODE" in occurring,
        "PHB": "PHB" in occurring and (far_inside or "NODE" in occurring),
        "PXB": "PXB" in occurring,
        "PIX": bool(occurring & {"PIX", "PXB"}),
    }
    switches = {i: tuple(f"{level}{classes[level][i]}" for level, needed in layers.items() if needed) for i in gpus}
    links = [(x, y, codes[a][b]) for x, a in enumerate(gpus) for y, b in enumerate(gpus) if x < y]
    return Host(
        places={place: None for place in places.values() if place is not None},
        gpus=[HostGpu(place=places[i], switches=switches[i]) for i in gpus],
        links=tuple(Link(gpus=(x, y), lanes=int(code[2:])) for x, y, code in links if code.startswith("NV")),
        num_cpus=len(frozenset[int]().union(*(cpu_list(cpus[i]) or () for i in gpus))),
    )


def read_amd_smi(source: SourceFile) -> Host:
    """
    Return the host: ``XGMI`` of one hop is a direct link, over several it leads over other GPUs; ``PCIE`` is no link.

    Where no weights are printed, every XGMI pair counts as direct. Bandwidths are of one lane and of all lanes. The
    tools list no switches, CPUs or memory; GPUs without a NUMA domain are attached to the machine. Raises `BadInput` if
    a table is incomplete, or link types are not symmetric.
    """
    tables: dict[str, _Table] = {}
    for n, line in enumerate(source.lines, 1):
        if title := _TITLE.match(line):
            names = source.lines[n].split() if n < len(source.lines) else []
            numbered = [f"GPU{i}" for i in range(len(names))]
            if not names or (names[0].startswith("GPU") and names != numbered):
                raise source.bad(n + 1, f"header {' '.join(names)[:40]!r}; expected GPUs, in order")
            table = tables[(title[1] or title[2]).lower()] = _table(source, n, names)
            if any(table.rest):
                raise source.bad(n + 1, f"rows of more than {len(names)} entries, expected as many as columns")
    if "link type" not in tables:
        raise source.bad(1, "no table of link types; expected the output of amd-smi topology or rocm-smi --showtopo")
    kinds = tables["link type"]
    _check(source, kinds, _AMD_CODE, "XGMI or PCIE")
    size = len(kinds.names)
    none = [[""] * size] * size
    weights, speeds = (
        next((table.codes for name, table in tables.items() if name in names and len(table.names) == size), none)
        for names in (("weight",), ("numa bw", "bandwidth"))
    )
    links = []
    for a, b in combinations(range(size), 2):
        if kinds.codes[a][b] != "XGMI":
            continue
        if not (weights[a][b].isdigit() and int(weights[a][b]) > HOP_WEIGHT):
            speed = re.match(r"(\d{1,9})-(\d{1,9})\Z", speeds[a][b])  # of one lane, and of all
            one, every = (int(speed[1]), int(speed[2])) if speed else (0, 0)
            lanes = every // one if one and every % one == 0 and every // one <= 64 else 1
            links.append(Link(gpus=(a, b), kind="xgmi", lanes=max(1, lanes), bandwidth_mbps=every or None))
    numas = {int(match[1]): f"numa{int(match[2])}" for line in source.lines if (match := _NUMA.match(line))}
    return Host(
        places={numas[i]: None for i in range(size) if i in numas},
        gpus=[HostGpu(place=numas.get(i)) for i in range(size)],
        links=tuple(links),
    )


def _table(source: SourceFile, header: int, names: list[str]) -> _Table:
    """Return the table of such columns below the line with index ``header``."""
    size = len(names)
    if not 1 <= len(set(names)) == size <= MAX_GPUS:
        raise source.bad(header + 1, f"{size} columns, names must differ; at most {MAX_GPUS}")
    rows: dict[str, tuple[list[str], int]] = {}
    for n, line in enumerate(source.lines[header + 1 :], header + 2):
        cells = [cell.strip() for cell in line.split("\t")] if line.count("\t") >= size else line.split()
        if cells and cells[0] in names:
            if len(cells) <= size or cells[0] in rows:
                raise source.bad(n, f"expected one row {cells[0]} of {size} entries; is a line broken?")
            rows[cells[0]] = cells[1:], n
            if len(rows) == size:
                found = [rows[name] for name in names]
                codes, rest = ([cells[part] for cells, _ in found] for part in (slice(size), slice(size, None)))
                return _Table(names, codes, rest, [n for _, n in found])
    missing = next(name for name in names if name not in rows)
    raise source.bad(header + 1, f"no row for {missing}; the output is incomplete")


def _check(source: SourceFile, table: _Table, known: re.Pattern[str], expected: str) -> None:
    """Refuse codes that are not known, or stand on the diagonal, or are not symmetric."""
    for a, row in enumerate(table.codes):
        for b, code in enumerate(row):
            pair, other = f"{table.names[a]} to {table.names[b]}", table.codes[b][a]
            if known.match(code) is None if a != b else code != table.codes[0][0] or known.match(code):
                raise source.bad(table.lines[a], f"{pair}: {code[:20]!r}, expected {expected}; none on the diagonal")
            if b < a and code != other:
                raise source.bad(table.lines[a], f"{pair}: {code}, but {other[:20]} the other way; links are symmetric")


def _classes(source: SourceFile, table: _Table) -> dict[str, list[int]]:
    """Return per level the class of each device: those connected by entries of that level or a nearer one."""
    codes, size = table.codes, len(table.names)
    joined = UnionFind(range(size))
    classes: dict[str, list[int]] = {}
    for level in NEAR_TO_FAR:
        pairs = [(a, b) for a in range(size) for b in range(a) if codes[a][b] == level]
        for a, b in pairs:  # they must not be connected by a nearer entry
            if joined[a] == joined[b]:
                pair = f"{table.names[a]} to {table.names[b]}"
                raise source.bad(table.lines[a], f"{pair}: {level}, but other entries put them nearer together")
        for a, b in pairs if level != "SYS" else ():
            joined.union(a, b)
        classes[level] = [joined[i] for i in range(size)]
    return classes


def _places(
    codes: list[list[str]], gpus: list[int], islands: list[int], cpus: list[str], numas: list[str]
) -> dict[int, str | None]:
    """Return the socket of each GPU: by NUMA domain, by CPUs, or by what is nearer than SYS; None: not stated."""
    near = [(a, b) for a in gpus for b in gpus if codes[a][b] in NEAR_TO_FAR[:-1]]
    apart = [(a, b) for a in gpus for b in gpus if codes[a][b] == "SYS"]
    if all(re.fullmatch(r"\d{1,4}", numas[i]) for i in gpus) and all(numas[a] == numas[b] for a, b in near):
        return {i: f"numa{int(numas[i])}" for i in gpus}
    lists = {i: cpu_list(cpus[i]) for i in gpus}
    together = all(lists[a] == lists[b] for a, b in near) and all(lists[a] != lists[b] for a, b in apart)
    if None not in lists.values() and together:
        return {i: f"cpus{min(j for j in gpus if lists[j] == lists[i])}" for i in gpus}
    return {i: f"island{islands[i]}" if near or apart else None for i in gpus}
