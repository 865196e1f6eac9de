"""Tables of connections between GPUs: ``amd-smi topology`` and ``rocm-smi --showtopo`` (or ``--showtopotype``)."""

import re

from placeopt.importers.source_file import SourceFile
from placeopt.importers.topo.host import MAX_GPUS, Host, HostGpu, HostPart
from placeopt.model import Link

HOP_WEIGHT = 15
"""Weight of one XGMI hop in the Linux kernel's amdkfd (``kfd_crat.h``); two hops weigh twice as much."""

_TITLE = re.compile(
    r"=*\s*(Weight|Link Type|Bandwidth)(?: between two GPUs)?\s*=+\Z|(WEIGHT|LINK TYPE|NUMA BW) TABLE:\Z"
)
_NUMA = re.compile(r"GPU\[(\d{1,4})\]\s*: \(Topology\) Numa Node: (\d{1,4})\Z")
_SPEEDS = re.compile(r"(\d{1,9})-(\d{1,9})\Z")

_Table = dict[tuple[int, int], str]
"""Entries by row and column."""


def is_amd_smi(source: SourceFile) -> bool:
    """Return whether the text is in this format."""
    words = ("ROCm System Management Interface", "ROCm SMI", "Link Type between two GPUs", "LINK TYPE TABLE:")
    return any(word in source.text for word in words)


def read_amd_smi(source: SourceFile) -> Host:
    """
    Return the host: ``XGMI`` of one hop is a direct link, over several it leads over other GPUs; ``PCIE`` is no link.

    Where no weights are printed, every XGMI pair counts as direct. Bandwidths are of one lane and of all lanes. The
    tools list no switches, CPUs or memory; GPUs without a NUMA domain are attached to the machine. Raises `BadInput` if
    a table is incomplete, or link types are not symmetric.
    """
    tables = {
        (title[1] or title[2]).lower(): _table(source, n)
        for n, line in enumerate(source.lines, 1)
        if (title := _TITLE.match(line))
    }
    if "link type" not in tables:
        raise source.bad(1, "no table of link types; expected the output of amd-smi topology or rocm-smi --showtopo")
    kinds, weights = tables["link type"], tables.get("weight", {})
    speeds = tables.get("numa bw", tables.get("bandwidth", {}))
    links = []
    for (a, b), kind in kinds.items():
        if (kind not in ("XGMI", "PCIE")) != (a == b):
            raise source.bad(1, f"GPU {a} to {b}: link type {kind[:20]!r}; expected XGMI or PCIE, on no diagonal")
        if kinds[b, a] != kind:
            raise source.bad(1, f"GPU {a} to {b}: {kind}, but {kinds[b, a][:20]} the other way; links are symmetric")
        weight = weights.get((a, b), "")
        if a < b and kind == "XGMI" and not (weight.isdigit() and int(weight) > HOP_WEIGHT):
            links.append(_link(a, b, speeds.get((a, b), "")))
    numas = {int(match[1]): int(match[2]) for match in map(_NUMA.match, source.lines) if match}
    gpus = tuple(HostGpu(place=f"numa{numas[a]}" if a in numas else None) for a, b in kinds if a == b)
    return Host(
        format="amd-smi",
        file=source.name,
        places=tuple(HostPart(key, "numa", None, int(key[4:])) for key in dict.fromkeys(g.place for g in gpus) if key),
        gpus=gpus,
        links=tuple(links),
    )


def _table(source: SourceFile, start: int) -> _Table:
    """Return the entries of the table below line ``start``; a row a GPU, in order."""
    names = source.lines[start].split() if start < len(source.lines) else []
    numbered = [f"GPU{i}" for i in range(len(names))]
    if not 1 <= len(set(names)) == len(names) <= MAX_GPUS or (names[0].startswith("GPU") and names != numbered):
        raise source.bad(start + 1, f"header {' '.join(names)[:40]!r}; expected at most {MAX_GPUS} GPUs, in order")
    table: _Table = {}
    for a, name in enumerate(names):
        n = start + 1 + a
        words = source.lines[n].split() if n < len(source.lines) else []
        if words[:1] != [name] or len(words) != len(names) + 1:
            raise source.bad(n + 1, f"expected {name} and {len(names)} entries; the table is incomplete")
        table.update({(a, b): word for b, word in enumerate(words[1:])})
    return table


def _link(a: int, b: int, speeds: str) -> Link:
    """A link; its bandwidth as the tool prints it: of one lane, a dash, of all."""
    one, every = map(int, match.groups()) if (match := _SPEEDS.match(speeds)) else (0, 0)
    lanes = every // one if one and every % one == 0 and every // one <= 64 else 1
    return Link(gpus=(a, b), kind="xgmi", lanes=max(1, lanes), bandwidth_mbps=every or None)
