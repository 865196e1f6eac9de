"""``rocm-smi --showtopo`` (or ``--showtopotype``): which GPUs are linked by xGMI, and their NUMA domains if printed."""

import re

from placeopt.formats.source_file import SourceFile
from placeopt.formats.topo.host import Host, HostGpu, HostPart
from placeopt.model import Link

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

    Raises
    ------
    BadInput
        If the table is missing, incomplete or not symmetric.
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
