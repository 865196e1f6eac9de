"""
``nvidia-smi topo -m``: the matrix of connections between GPUs (and network cards), with CPU and NUMA affinity.

The tool's legend, from near to far, and what becomes of it:

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
from dataclasses import dataclass
from functools import reduce
from operator import or_

from networkx.utils import UnionFind

from placeopt.importers.source_file import SourceFile
from placeopt.importers.topo.host import MAX_GPUS, Host, HostGpu, HostPart, cpu_list
from placeopt.model import Link

NEAR_TO_FAR = ("PIX", "PXB", "PHB", "NODE", "SYS")

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
    Return the host. The matrix states neither models nor memory; CPUs are all those of the affinities.

    Sockets are the NUMA domains of the affinities, also where the driver calls a pair of one domain SYS. Where no
    domain is named, or nearer pairs have different ones, the matrix alone defines the sockets. Raises `BadInput` if the
    matrix is incomplete, not symmetric, or contradicts itself.
    """
    matrix = _read_matrix(source)
    gpus = [i for i, name in enumerate(matrix.names) if name.startswith("GPU")]
    classes = _classes(source, matrix)
    places = _places(matrix, gpus, classes["NODE"])
    occurring = {code for row in matrix.codes for code in row}
    far_inside = any(places[a] == places[b] and matrix.codes[a][b] == "SYS" for a in gpus for b in gpus)
    layers = [
        level
        for level, needed in (
            ("NODE", far_inside and "NODE" in occurring),
            ("PHB", "PHB" in occurring and (far_inside or "NODE" in occurring)),
            ("PXB", "PXB" in occurring),
            ("PIX", bool(occurring & {"PIX", "PXB"})),
        )
        if needed
    ]
    made = [HostGpu(place=places[i], switches=tuple(f"{level}{classes[level][i]}" for level in layers)) for i in gpus]
    mask = reduce(or_, (cpu_list(matrix.affinity[i][0]) or 0 for i in gpus), 0)
    return Host(
        format="nvidia-smi topo -m",
        file=source.name,
        places=tuple(
            HostPart(key, "numa", None, int(key.removeprefix("numa")) if key.startswith("numa") else None)
            for key in dict.fromkeys(places.values())
            if key is not None
        ),
        gpus=tuple(made),
        switch_mbps=dict.fromkeys((key for gpu in made for key in gpu.switches), None),
        links=tuple(
            Link(gpus=(x, y), lanes=int(matrix.codes[a][b][2:]))
            for x, a in enumerate(gpus)
            for y, b in enumerate(gpus)
            if x < y and matrix.codes[a][b].startswith("NV")
        ),
        num_cpus=mask.bit_count() or None,
    )


def _read_matrix(source: SourceFile) -> _Matrix:
    start = next((n for n, line in enumerate(source.lines) if _HEADER.match(line)), 0)
    names = []
    for word in source.lines[start].split():
        if not _NAME.match(word):
            break
        names.append(word)
    if len(set(names)) != len(names) or len(names) > MAX_GPUS:
        raise source.bad(start + 1, f"{len(names)} columns, names must differ; at most {MAX_GPUS}")
    size = len(names)
    rows: dict[str, tuple[int, list[str]]] = {}
    for n, line in enumerate(source.lines[start + 1 :], start + 2):
        cells = [cell.strip() for cell in line.split("\t")] if line.count("\t") >= size else line.split()
        if not cells or cells[0] not in names:
            continue
        if len(cells) <= size:
            raise source.bad(n, f"{len(cells) - 1} entries for {cells[0]}, expected {size}; is a line broken?")
        if cells[0] in rows:
            raise source.bad(n, f"row {cells[0]} appears twice; give the output of one machine")
        rows[cells[0]] = (n, [*cells[1:], "", ""])
    if missing := [name for name in names if name not in rows]:
        raise source.bad(start + 1, f"no row for {missing[0]}; the output is incomplete")
    found = [rows[name] for name in names]
    matrix = _Matrix(
        names,
        [["SYS" if code == "SOC" else code for code in cells[:size]] for _, cells in found],
        [(cells[size], cells[size + 1]) for _, cells in found],
        [n for n, _ in found],
    )
    _check_codes(source, matrix)
    return matrix


def _check_codes(source: SourceFile, matrix: _Matrix) -> None:
    for a, row in enumerate(matrix.codes):
        for b, code in enumerate(row):
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


def _places(matrix: _Matrix, gpus: list[int], islands: list[int]) -> dict[int, str | None]:
    """Return the socket of each GPU: by NUMA domain, by CPUs, or by what is nearer than SYS; None: not stated."""
    near = [(a, b) for a in gpus for b in gpus if matrix.codes[a][b] in NEAR_TO_FAR[:-1]]
    apart = [(a, b) for a in gpus for b in gpus if matrix.codes[a][b] == "SYS"]
    domains = {i: matrix.affinity[i][1] for i in gpus}
    if all(re.fullmatch(r"\d{1,4}", name) for name in domains.values()) and all(
        domains[a] == domains[b] for a, b in near
    ):
        return {i: f"numa{int(name)}" for i, name in domains.items()}
    masks = {i: cpu_list(matrix.affinity[i][0]) for i in gpus}
    if (
        None not in masks.values()
        and all(masks[a] == masks[b] for a, b in near)
        and all(masks[a] != masks[b] for a, b in apart)
    ):
        return {i: f"cpus{masks[i]}" for i in gpus}
    return {i: f"island{islands[i]}" if near or apart else None for i in gpus}
