"""The links between a job's GPUs, and a machine drawn with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import NamedTuple

from rich.text import Text

from placeopt.errors import BadInput
from placeopt.model import Link, Machine
from placeopt.readable import plural
from placeopt.report.text.palette import JOB_COLORS
from placeopt.topology import bottleneck_mbps, gpu_distances

WIDTH = 100
"""Largest width of the picture, in columns."""

MAX_MATRIX_GPUS = 32
"""Number of GPUs up to which the matrix is drawn; the jobs' lines state their links at any size."""

LEGEND: Mapping[str, str] = {
    "NV#": "NVLink, # lanes",
    "XGMI": "xGMI link",
    "PCIE": "direct PCIe link",
    "PIX": "same switch",
    "PXB": "below one upper switch",
    "NODE": "same socket",
    "SYS": "across sockets",
    "HOST": "same machine, more is not known",
}
"""Names of connections, as ``nvidia-smi topo -m`` has them; NODE stands for its PHB too."""


class PairLink(NamedTuple):
    """The connection of two GPUs of a machine."""

    a: int
    b: int
    kind: str
    """``nvlink``, ``xgmi``, ``pcie`` for a direct link, else ``PIX``, ``PXB``, ``NODE``, ``SYS`` or ``HOST``."""
    lanes: int
    """Number of lanes of a direct link; 0 without one."""
    bandwidth_mbps: int | None
    """Bandwidth in one direction, of the direct link or of the path through the tree; None if unknown."""
    distance: int
    """Length of the shortest path, as in ``gpu_distances``; the communication cost counts it."""

    @property
    def label(self) -> str:
        """Short name for a table: ``NV2``, ``XGMI``, ``PIX``."""
        return f"NV{self.lanes}" if self.kind == "nvlink" else self.kind.upper()


def job_links(machine: Machine, gpus: Iterable[int]) -> list[PairLink]:
    """Return the connection of every unordered pair of the given GPUs, by index; indices are distinct."""
    indices = sorted(gpus)
    for gpu in indices:
        if not 0 <= gpu < len(machine.gpus) or indices.count(gpu) > 1:
            raise BadInput(
                f"machine {machine.id!r}: GPU {gpu}; expected different indices from 0 to {len(machine.gpus) - 1}"
            )
    distances = gpu_distances(machine)
    tree_mbps = bottleneck_mbps(machine)
    links = {tuple(sorted(link.gpus)): link for link in machine.links}
    chains = _chains(machine)
    links_of = []
    for a, b in combinations(indices, 2):
        link: Link | None = links.get((a, b))
        mbps = link.bandwidth_mbps if link is not None else int(tree_mbps[a, b]) or None
        kind = link.kind if link is not None else _meeting(machine, chains[a], chains[b])
        links_of.append(PairLink(a, b, kind, link.lanes if link is not None else 0, mbps, int(distances[a, b])))
    return links_of


def machine_picture(machine: Machine, held: Mapping[int, str]) -> Text:
    """
    Draw a machine: its GPUs by socket and switch, the matrix of connections, and what each job got.

    ``held``: GPU index -> id of the job that holds it; a shared GPU may name several in one string, free GPUs are left
    out. The text has at most ``WIDTH`` columns. Jobs have letters as well as colours, and a connection inside a job is
    in brackets, so ``.plain`` holds the same information.
    """
    drawn = range(len(machine.gpus)) if len(machine.gpus) <= MAX_MATRIX_GPUS else sorted(held)
    pairs = {(pair.a, pair.b): pair for pair in job_links(machine, sorted({*drawn, *held}))}
    names = list(dict.fromkeys(held[gpu] for gpu in sorted(held)))
    letters = {name: _letters(i) for i, name in enumerate(names)}
    styles = {name: JOB_COLORS[i % len(JOB_COLORS)] for i, name in enumerate(names)}
    text = Text(no_wrap=True)
    text.append(
        f"{_short(machine.id, 60)}: {plural(len(machine.gpus), 'GPU')}, {len(machine.gpus) - len(held)} free\n", "bold"
    )
    _append_tree(text, machine, held, letters, styles)
    if len(machine.gpus) > MAX_MATRIX_GPUS:
        text.append(f"(no matrix: more than {MAX_MATRIX_GPUS} GPUs)\n", "dim")
    elif len(machine.gpus) > 1:
        _append_matrix(text, pairs, held, letters, styles, len(machine.gpus))
    for name in names:
        mine = sorted(gpu for gpu in held if held[gpu] == name)
        inside = [pairs[pair] for pair in combinations(mine, 2)]
        text.append(_short(_summary(letters[name], name, mine, inside), WIDTH) + "\n", styles[name])
    text.rstrip()
    return text


def _append_tree(
    text: Text, machine: Machine, held: Mapping[int, str], letters: Mapping[str, str], styles: Mapping[str, str]
) -> None:
    """Return the parts as an indented list, each with its own GPUs: ``switch0  0 A  1 A  2 .``."""
    parents = {part.id: part.parent for part in machine.parts}
    gpus: dict[str | None, list[int]] = {}
    for i, place in enumerate(machine.gpus):
        gpus.setdefault(place.part, []).append(i)
    below: dict[str | None, list[str]] = {}
    for part in machine.parts:
        below.setdefault(part.parent, []).append(part.id)
    stack: list[tuple[str | None, int]] = [(None, 0)]
    while stack:
        part_id, depth = stack.pop()
        mine = gpus.get(part_id, [])
        if part_id is not None or mine:
            head = "  " * min(depth, 12) + _short(part_id or "machine", 30)
            text.append(f"{head}  " if mine else head, "dim" if part_id in parents and not mine else "")
            column = len(head) + 2
            for gpu in mine:
                mark = letters[held[gpu]] if gpu in held else "."
                if column + len(f"{gpu} {mark}") + 2 > WIDTH:
                    text.append("\n" + " " * (len(head) + 2))
                    column = len(head) + 2
                text.append(f"{gpu} {mark}", styles[held[gpu]] if gpu in held else "dim")
                text.append("  ")
                column += len(f"{gpu} {mark}") + 2
            text.append("\n")
        stack += [(child, depth + 1) for child in reversed(below.get(part_id, []))]


def _append_matrix(
    text: Text,
    pairs: Mapping[tuple[int, int], PairLink],
    held: Mapping[int, str],
    letters: Mapping[str, str],
    styles: Mapping[str, str],
    size: int,
) -> None:
    """Return the matrix of connections, in as many blocks of columns as the width needs, and its legend."""
    marks = [letters[held[gpu]] if gpu in held else "." for gpu in range(size)]
    head = max(len(f"{gpu} {mark}") for gpu, mark in enumerate(marks)) + 1
    cell = max(5, *(len(pair.label) + 2 for pair in pairs.values()))
    step = max(1, (WIDTH - head) // cell)
    for start in range(0, size, step):
        columns = range(start, min(start + step, size))
        text.append("\n" + " " * head)
        for b in columns:
            text.append(f" {b} {marks[b]}".ljust(cell), styles[held[b]] if b in held else "dim")
        text.append("\n")
        for a in range(size):
            text.append(f"{a} {marks[a]}".ljust(head), styles[held[a]] if a in held else "dim")
            for b in columns:
                same = a in held and held.get(b) == held[a]
                label = "X" if a == b else pairs[min(a, b), max(a, b)].label
                inside = same and a != b
                style = f"bold {styles[held[a]]}" if inside else "dim"
                text.append((f"[{label}]" if inside else f" {label} ").ljust(cell), style)
            text.append("\n")
    kinds = {"NV#" if pair.kind == "nvlink" else pair.label for pair in pairs.values()}
    text.append("; ".join(f"{kind} {meaning}" for kind, meaning in LEGEND.items() if kind in kinds) + "\n\n", "dim")


def _summary(letter: str, name: str, gpus: list[int], inside: list[PairLink]) -> str:
    """Return a job's line: its GPUs, the number of connections of each kind, and the sum of distances."""
    line = f"{letter} = {_short(name, 30)}: GPU{'s' if len(gpus) > 1 else ''} {','.join(map(str, gpus))}"
    if not inside:
        return line
    kinds = Counter(pair.label for pair in inside)
    counts = ", ".join(f"{count} x {label}" for label, count in sorted(kinds.items()))
    return f"{line}: {counts}; distance {sum(pair.distance for pair in inside)}"


def _chains(machine: Machine) -> list[list[str]]:
    """Return per GPU the parts above it, the nearest first."""
    parents = {part.id: part.parent for part in machine.parts}
    chains = []
    for gpu in machine.gpus:
        chain: list[str] = []
        part = gpu.part
        while part is not None:
            chain.append(part)
            part = parents[part]
        chains.append(chain)
    return chains


def _meeting(machine: Machine, a: list[str], b: list[str]) -> str:
    """Return the lowest part above both GPUs."""
    levels = {part.id: part.level for part in machine.parts}
    common = next((part for part in a if part in set(b)), None)
    if common is None:
        return "SYS" if "socket" in levels.values() else "HOST"
    if levels[common] != "switch":
        return "NODE"
    return "PIX" if common == a[0] == b[0] else "PXB"


def _letters(i: int) -> str:
    """Return the name of a letter by index: A, B, ..., Z, AA, AB, ..."""
    name = ""
    i += 1
    while i:
        i, digit = divmod(i - 1, 26)
        name = chr(ord("A") + digit) + name
    return name


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
