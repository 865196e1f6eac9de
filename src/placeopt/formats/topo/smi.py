"""
Matrices of connections between GPUs: ``nvidia-smi topo -m`` and ``rocm-smi --showtopo`` (or ``--showtopotype``).

``nvidia-smi topo -m`` prints the matrix of connections between GPUs (and network cards), with CPU and NUMA affinity.

The tool's legend, from near to far, and what becomes of it:

``NV#``   a direct link of # lanes; hides how the pair is connected over PCIe
``PIX``   at most one PCIe bridge: one switch
``PXB``   several PCIe bridges: different switches below one upper switch
``PHB``   the same host bridge: one socket; a part of its own only where NODE occurs too
``NODE``  different host bridges of one NUMA domain: one socket
``SYS``   across sockets (``SOC`` in old drivers)

A level that occurs anywhere becomes a layer for all GPUs, so that a farther pair never comes out nearer. Network cards
take part in the grouping, then go: two GPUs that are both PIX to one card share its switch, also where their own entry
is NV#.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from networkx.utils import UnionFind

from placeopt.formats.source_file import SourceFile
from placeopt.formats.topo.host import Host, HostGpu, HostPart, cpu_list
from placeopt.model import Link

NEAR_TO_FAR = ("PIX", "PXB", "PHB", "NODE", "SYS")
MAX_DEVICES = 256

_NAME = re.compile(r"(GPU|NIC)\d{1,4}\Z|(mlx|bnxt|hfi|qedr|irdma|efa|i40iw|cxgb|hns)\w{0,20}\Z")
_NVLINK = re.compile(r"NV([1-9]|[1-5]\d|6[0-4])\Z")
_HEADER = re.compile(r"GPU0\b.*\bCPU\b|GPU0\s+(GPU|NIC|mlx)\w+")


def is_nvidia_smi(source: SourceFile) -> bool:
    """Return whether the text is in this format."""
    return any(_HEADER.match(line) for line in source.lines)


@dataclass(frozen=True)
class _Matrix:
    names: list[str]
    codes: list[list[str]]
    affinity: list[tuple[str, str]]
    """(CPU, NUMA) of each row, as printed."""
    lines: list[int]


def read_nvidia_smi(source: SourceFile) -> Host:
    """
    Return the host. The matrix states neither models nor memory; CPUs are those of the affinities.

    Where the affinities contradict the matrix (as in some virtual machines), the matrix alone defines the sockets.
    Raises `BadInput` if the matrix is incomplete, not symmetric, or contradicts itself.
    """
    matrix = _read_matrix(source)
    gpus = [i for i, name in enumerate(matrix.names) if name.startswith("GPU")]
    classes = _classes(source, matrix)
    occurring = {code for row in matrix.codes for code in row}
    layers = [level for level, wanted in (("PHB", {"PHB", "NODE"} <= occurring), ("PXB", "PXB" in occurring)) if wanted]
    if occurring & {"PIX", "PXB"}:
        layers.append("PIX")
    by_affinity = _affinity_holds(matrix, gpus)
    has_islands = bool(occurring & {"PHB", "NODE", "SYS"})
    islands = list(dict.fromkeys(classes["NODE"][i] for i in gpus))
    made = []
    for i in gpus:
        cpus, numa = matrix.affinity[i] if by_affinity else ("", "")
        made.append(
            HostGpu(
                numa=int(numa) if re.fullmatch(r"\d{1,4}", numa) else None,
                cpus=cpu_list(cpus) or 0,
                island=islands.index(classes["NODE"][i]) if not by_affinity and has_islands else None,
                switches=tuple(f"{level}{classes[level][i]}" for level in layers),
            )
        )
    links = tuple(
        Link(gpus=(x, y), lanes=int(matrix.codes[a][b][2:]))
        for x, a in enumerate(gpus)
        for y, b in enumerate(gpus)
        if x < y and matrix.codes[a][b].startswith("NV")
    )
    places = _places(made)
    mask = 0
    for place in places:
        mask |= place.cpus
    return Host(
        format="nvidia-smi topo -m",
        file=source.name,
        places=places,
        gpus=tuple(made),
        switch_mbps=dict.fromkeys((key for gpu in made for key in gpu.switches), None),
        links=links,
        num_cpus=mask.bit_count() or None,
    )


def _read_matrix(source: SourceFile) -> _Matrix:
    start = next((n for n, line in enumerate(source.lines) if _HEADER.match(line)), None)
    if start is None:
        raise source.bad(1, "no header 'GPU0 GPU1 ... CPU Affinity'; expected the output of nvidia-smi topo -m")
    names = []
    for word in source.lines[start].split():
        if not _NAME.match(word):
            break
        names.append(word)
    if len(set(names)) != len(names) or len(names) > MAX_DEVICES:
        raise source.bad(start + 1, f"{len(names)} columns, names must differ; at most {MAX_DEVICES}")
    size = len(names)
    rows: dict[str, tuple[int, list[str], tuple[str, str]]] = {}
    for n, line in enumerate(source.lines[start + 1 :], start + 2):
        cells = [cell.strip() for cell in line.split("\t")] if line.count("\t") >= size else line.split()
        if not cells or cells[0] not in names or len(cells) <= size:
            if cells and cells[0] in names:
                raise source.bad(n, f"{len(cells) - 1} entries for {cells[0]}, expected {size}; is a line broken?")
            continue
        if cells[0] in rows:
            raise source.bad(n, f"row {cells[0]} appears twice; give the output of one machine")
        rest = [*cells[size + 1 :], "", ""]
        rows[cells[0]] = (n, cells[1 : size + 1], (rest[0], rest[1]))
    missing = [name for name in names if name not in rows]
    if missing:
        raise source.bad(start + 1, f"no row for {missing[0]}; the output is incomplete")
    matrix = _Matrix(
        names, [rows[name][1] for name in names], [rows[name][2] for name in names], [rows[name][0] for name in names]
    )
    _check_codes(source, matrix)
    return matrix


def _check_codes(source: SourceFile, matrix: _Matrix) -> None:
    for a, row in enumerate(matrix.codes):
        for b, code in enumerate(row):
            row[b] = code = "SYS" if code == "SOC" else code
            pair = f"{matrix.names[a]} to {matrix.names[b]}"
            if code != "X" and code not in NEAR_TO_FAR and not _NVLINK.match(code):
                raise source.bad(matrix.lines[a], f"{pair}: {code[:20]!r}, expected X, NV#, {', '.join(NEAR_TO_FAR)}")
            if (code == "X") != (a == b):
                raise source.bad(matrix.lines[a], f"{pair}: {code[:20]!r}; X stands on the diagonal, and only there")
            if b < a and matrix.codes[b][a] != code:
                raise source.bad(
                    matrix.lines[a], f"{pair}: {code}, but {matrix.codes[b][a]} the other way; the matrix is symmetric"
                )


def _classes(source: SourceFile, matrix: _Matrix) -> dict[str, list[int]]:
    """Per level, the class of each device: those connected by entries of that level or a nearer one."""
    size = len(matrix.names)
    joined = UnionFind(range(size))
    classes: dict[str, list[int]] = {}
    for level in NEAR_TO_FAR:
        pairs = [(a, b) for a in range(size) for b in range(a) if matrix.codes[a][b] == level]
        for a, b in pairs:  # they must not be connected by a nearer entry
            if joined[a] == joined[b]:
                raise source.bad(
                    matrix.lines[a],
                    f"{matrix.names[a]} to {matrix.names[b]}: {level}, but other entries put them nearer together",
                )
        for a, b in pairs if level != "SYS" else ():
            joined.union(a, b)
        classes[level] = [joined[i] for i in range(size)]
    return classes


def _affinity_holds(matrix: _Matrix, gpus: Iterable[int]) -> bool:
    """Whether every GPU has an affinity, SYS pairs have different ones and PCIe neighbours the same."""
    keys = {}
    for i in gpus:
        cpus, numa = matrix.affinity[i]
        known = bool(re.fullmatch(r"\d{1,4}", numa) or cpu_list(cpus))
        keys[i] = (cpus, numa) if known else None
    if None in keys.values():
        return False
    return all(
        (keys[a] != keys[b]) == (matrix.codes[a][b] == "SYS")
        for a in keys
        for b in keys
        if matrix.codes[a][b] in NEAR_TO_FAR
    )


def _places(gpus: list[HostGpu]) -> tuple[HostPart, ...]:
    """One place per NUMA domain or, if none is stated, per set of CPUs or island."""
    cpus: dict[tuple[str, int], int] = {}
    for gpu in gpus:
        if gpu.numa is not None:
            key = ("numa", gpu.numa)
        elif gpu.cpus:
            key = ("cpus", gpu.cpus)
        elif gpu.island is not None:
            key = ("island", gpu.island)
        else:
            continue
        cpus[key] = cpus.get(key, 0) | gpu.cpus
    return tuple(
        HostPart(f"{kind}{number if kind != 'cpus' else c}", "numa", None, number if kind == "numa" else None, mask)
        for c, ((kind, number), mask) in enumerate(cpus.items())
    )


MAX_GPUS = 256

_TITLE = re.compile(r"=* ?Link Type between two GPUs ?=*\Z")
_NUMA = re.compile(r"GPU\[(\d{1,4})\]\s*: \(Topology\) Numa Node: (-?\d{1,4})\Z")


def is_rocm_smi(source: SourceFile) -> bool:
    """Return whether the text is in this format."""
    return re.search(r"ROCm System Management Interface|ROCm SMI|Link Type between two GPUs", source.text) is not None


def read_rocm_smi(source: SourceFile) -> Host:
    """
    Read the table of link types: ``XGMI`` is a direct link, ``PCIE`` is none.

    The tool lists neither lanes nor switches, so a link has one lane, and GPUs without a NUMA domain are attached to
    the machine. It lists no CPUs and no memory.
    """
    start = next((n for n, line in enumerate(source.lines) if _TITLE.match(line)), None)
    if start is None:
        raise source.bad(1, "no table 'Link Type between two GPUs'; expected the output of rocm-smi --showtopo")
    names: list[str] = []
    rows: dict[str, tuple[int, list[str]]] = {}
    for n, line in enumerate(source.lines[start + 1 :], start + 2):
        words = line.split()
        if line.startswith("=") or (rows and not words):
            break
        if not names and words:
            names = words
            if len(names) > MAX_GPUS or names != [f"GPU{i}" for i in range(len(names))]:
                raise source.bad(n, f"header {line[:40]!r}; expected GPU0 GPU1 ..., at most {MAX_GPUS}")
        elif words:
            if words[0] not in names or words[0] in rows or len(words) != len(names) + 1:
                raise source.bad(n, f"{line[:40]!r}; expected one row of {len(names)} entries for each GPU")
            rows[words[0]] = (n, words[1:])
    if not names or len(rows) != len(names):
        raise source.bad(start + 1, f"{len(rows)} rows for {len(names)} GPUs; the output is incomplete")
    links = []
    for a, name in enumerate(names):
        n, codes = rows[name]
        for b, code in enumerate(codes):
            if (code not in ("XGMI", "PCIE")) != (a == b):
                raise source.bad(n, f"{name} to {names[b]}: {code[:20]!r}; expected XGMI or PCIE (0 on the diagonal)")
            if rows[names[b]][1][a] != code and a != b:
                raise source.bad(n, f"{name} to {names[b]}: {code}, but not the other way; links are symmetric")
            if a < b and code == "XGMI":
                links.append(Link(gpus=(a, b), kind="xgmi"))
    numas = {int(m[1]): int(m[2]) for m in map(_NUMA.match, source.lines) if m and int(m[2]) >= 0}
    gpus = tuple(HostGpu(numa=numas.get(i)) for i in range(len(names)))
    known = dict.fromkeys(gpu.numa for gpu in gpus if gpu.numa is not None)
    return Host(
        format="rocm-smi --showtopo",
        file=source.name,
        places=tuple(HostPart(f"numa{numa}", "numa", None, numa) for numa in known),
        gpus=gpus,
        links=tuple(links),
    )
