"""``numactl --hardware``: NUMA domains with their CPUs, memory and distances."""

import re

from placeopt.formats.source_file import SourceFile
from placeopt.formats.topo.host import MAX_CPU, Host, HostPart

MAX_NUMA = 256

SAME_SOCKET_DISTANCE = 15
"""
Domains at most this far apart share a socket: firmware of AMD and Intel reports 10 to itself, 11 or 12 inside a package
and 16 or more across. The output itself names no sockets, so this is a reading.
"""

_LINE = re.compile(r"node (\d{1,4}) (cpus|size):(.*)\Z")
_ROW = re.compile(r"(\d{1,4}):((?:\s+\d{1,4})+)\Z")


def is_numactl(source: SourceFile) -> bool:
    """Return whether the text is in this format."""
    return any(re.match(r"available: \d+ nodes?\b", line) for line in source.lines)


def read_numactl(source: SourceFile) -> Host:
    """
    Return the host: one part for each domain with CPUs, under sockets if the distances show them. It lists no GPUs.

    Memory is the sum over domains with CPUs; memory without CPUs (a GPU's own, on some machines) is not the host's.

    Raises
    ------
    BadInput
        If a line is malformed, or the domains announced are not there.
    """
    cpus: dict[int, int] = {}
    sizes: dict[int, int] = {}
    distances: dict[int, list[int]] = {}
    columns: list[int] = []
    announced = -1
    for n, line in enumerate(source.lines, 1):
        if match := re.match(r"available: (\d{1,4}) nodes?\b", line):
            announced = int(match[1])
        elif match := _LINE.match(line):
            numa = int(match[1])
            if match[2] == "cpus":
                cpus[numa] = _cpus(source, n, match[3])
            elif size := re.fullmatch(r"(\d{1,9}) MB", match[3].strip()):
                sizes[numa] = int(size[1])
            else:
                raise source.bad(n, f"size {match[3].strip()[:40]!r} of node {numa}; expected such as '64502 MB'")
        elif re.match(r"node(\s+\d+)+\Z", line):
            columns = [int(word[:5]) for word in line.split()[1:]]
        elif match := _ROW.match(line):
            distances[int(match[1])] = [int(word) for word in match[2].split()]
    if announced != len(cpus) or not cpus or len(cpus) > MAX_NUMA:
        raise source.bad(
            1, f"{announced} nodes announced, {len(cpus)} found; expected the output of numactl --hardware"
        )
    numas = sorted(numa for numa, mask in cpus.items() if mask)
    if not numas:
        raise source.bad(1, "no node has CPUs; expected the output of numactl --hardware")
    sockets = _sockets(numas, columns, distances)
    places: list[HostPart] = []
    for s, members in enumerate(sockets or []):
        mask = 0
        for numa in members:
            mask |= cpus[numa]
        places.append(HostPart(f"socket{s}", "socket", cpus=mask))
        places += [HostPart(f"numa{numa}", "numa", f"socket{s}", numa, cpus[numa]) for numa in members]
    if sockets is None:
        places = [HostPart(f"numa{numa}", "numa", None, numa, cpus[numa]) for numa in numas]
    return Host(
        format="numactl --hardware",
        file=source.name,
        places=tuple(places),
        knows_sockets=sockets is not None,
        num_cpus=sum(mask.bit_count() for mask in cpus.values()),
        memory_mib=sum(sizes.get(numa, 0) for numa in numas) or None,
    )


def _cpus(source: SourceFile, n: int, text: str) -> int:
    mask = 0
    for word in text.split():
        if not re.fullmatch(r"\d{1,6}", word) or int(word) > MAX_CPU:
            raise source.bad(n, f"CPU {word[:40]!r}; expected a number from 0 to {MAX_CPU}")
        mask |= 1 << int(word)
    return mask


def _sockets(numas: list[int], columns: list[int], distances: dict[int, list[int]]) -> list[list[int]] | None:
    """Group the domains into sockets; None if distances are missing or do not make groups."""
    if any(len(distances.get(numa, [])) != len(columns) or numa not in columns for numa in numas):
        return None
    position = {numa: columns.index(numa) for numa in numas}
    near = {
        numa: [other for other in numas if other == numa or distances[numa][position[other]] <= SAME_SOCKET_DISTANCE]
        for numa in numas
    }
    if any(near[other] != members for members in near.values() for other in members):
        return None
    return [members for numa, members in near.items() if members[0] == numa]
