"""
Slurm's ``topology.conf``, the tree and the block plugin, and what ``scontrol show topology`` prints of either.

topograph writes the same.
"""

import re

from placeopt.formats.fabric import Fabric, make_fabric
from placeopt.formats.slurm.fields import MAX_HOSTS, expand_hosts
from placeopt.formats.source_file import SourceFile

_NAMES = ("switchname", "blockname", "aggregatedblock")
_KEYS = (*_NAMES, "switches", "nodes", "blocksizes", "linkspeed", "level", "blockindex", "blocksize")
_LINE = re.compile(r"(SwitchName|BlockName|BlockSizes)=", re.IGNORECASE)


def is_slurm_topology(source: SourceFile) -> bool:
    """Return whether the text is in this format."""
    return any(_LINE.match(line) for line in source.lines)


def read_slurm_topology(source: SourceFile) -> Fabric:
    """
    Return the network. Switches or blocks become domains; a node is attached to the switch or block that names it.

    Blocks are grouped by ``BlockSizes`` (each size a multiple of the first, in nodes): consecutive blocks form a larger
    one, the last of which may be incomplete. ``LinkSpeed``, which Slurm ignores too, is not read.

    ``scontrol show topology`` prints a line a switch with its ``Level``, and under a switch above level 0 also all
    nodes below it: these are attached to the switches of level 0. Of blocks it prints ``BlockName=``, and larger ones
    as ``AggregatedBlock=`` with the names of the blocks inside and ``BlockSize=``. Raises `BadInput` if a line is
    malformed, a name is unknown, or the switches are no tree.
    """
    parents: dict[str, str | None] = {}
    above: dict[str, tuple[str, int]] = {}
    node_domains: dict[str, str] = {}
    blocks: list[str] = []
    sizes: list[int] = []
    aggregated: list[tuple[int, str, list[str], int]] = []
    for n, line in enumerate(_joined(source.text), 1):
        pairs = _pairs(source, n, line)
        name = next((pairs[key] for key in _NAMES if key in pairs), None)
        if "aggregatedblock" in pairs:
            inside = _hosts(source, n, pairs["aggregatedblock"])
            aggregated.append((_sizes(source, n, pairs.get("blocksize", ""))[0], pairs["aggregatedblock"], inside, n))
            continue
        if "blocksizes" in pairs:
            sizes = _sizes(source, n, pairs["blocksizes"])
        if name is None:
            continue
        if name in parents:
            raise source.bad(n, f"{name[:60]!r} appears twice; expected one line for each switch or block")
        parents[name] = None
        if "blockname" in pairs:
            blocks.append(name)
        printed_again = "switches" in pairs and pairs.get("level", "0") != "0"
        for node in _hosts(source, n, "" if printed_again else pairs.get("nodes", "")):
            if node_domains.setdefault(node, name) != name:
                raise source.bad(
                    n, f"node {node[:60]!r} is under {node_domains[node][:60]!r} already; a node hangs on one domain"
                )
        for switch in _hosts(source, n, pairs.get("switches", "")):
            if above.setdefault(switch, (name, n))[0] != name:
                raise source.bad(
                    n, f"switch {switch[:60]!r} is under {above[switch][0][:60]!r} already; expected a tree"
                )
        if len(node_domains) > MAX_HOSTS or len(above) > MAX_HOSTS:
            raise source.bad(n, f"more than {MAX_HOSTS} nodes or switches")
    for switch, (name, n) in above.items():
        if switch not in parents:
            raise source.bad(n, f"{name[:60]!r} names the switch {switch[:60]!r}, which has no line of its own")
        parents[switch] = name
    top = {block: block for block in blocks}
    for _, name, inside, n in sorted(aggregated):
        for block in inside:
            if block not in top:
                raise source.bad(n, f"{name[:60]!r} names the block {block[:60]!r}, which has no line of its own")
            if top[block] != name:
                parents[top[block]], top[block] = name, name
        parents.setdefault(name, None)
    if sizes:
        _group_blocks(source, parents, blocks, sizes)
    return make_fabric(source.name, parents, node_domains)


def _joined(text: str) -> list[str]:
    """The lines without comments; a backslash at the end continues a line (the number stays that of the last)."""
    joined: list[str] = []
    begun: list[str] = []
    for line in text.split("\n"):
        kept = line.split("#", 1)[0].rstrip()
        begun.append(kept.removesuffix("\\"))
        joined.append("")
        if not kept.endswith("\\"):
            joined[-1] = "".join(begun)
            begun = []
    joined[-1] += "".join(begun)
    return joined


def _pairs(source: SourceFile, n: int, line: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in line.split():
        key, equals, value = word.partition("=")
        if not equals or not value or key.lower() not in _KEYS or key.lower() in pairs:
            raise source.bad(n, f"{word[:60]!r}; expected SwitchName=, BlockName=, Nodes=, Switches= or BlockSizes=")
        pairs[key.lower()] = value
    if pairs and not pairs.keys() & {*_NAMES, "blocksizes"}:
        raise source.bad(n, "no SwitchName= or BlockName=; expected one on each line")
    return pairs


def _hosts(source: SourceFile, n: int, text: str) -> list[str]:
    try:
        return expand_hosts(text)
    except ValueError as error:
        raise source.bad(n, str(error)) from error


def _sizes(source: SourceFile, n: int, text: str) -> list[int]:
    words = text.split(",")
    sizes = [int(word) for word in words if re.fullmatch(r"[1-9]\d{0,5}", word)]
    if len(sizes) != len(words) or sizes != sorted(set(sizes)) or any(size % sizes[0] for size in sizes):
        raise source.bad(n, f"BlockSizes={text[:60]!r}; expected growing multiples of the first")
    return sizes


def _group_blocks(source: SourceFile, parents: dict[str, str | None], blocks: list[str], sizes: list[int]) -> None:
    """Put consecutive blocks under larger ones; a size that gathers nothing new is left out."""
    base, below = sizes[0], [(block, 1) for block in blocks]
    for size in sizes[1:]:
        if len(below) == 1:
            break
        groups: list[tuple[str, int]] = []
        room = 0
        for name, count in below:
            if count > room:
                groups.append((f"block{size}.{len(groups) + 1}", 0))
                room = size // base
            group, held = groups[-1]
            groups[-1] = (group, held + count)
            room -= count
            parents[name] = group
        for group, _ in groups:
            if group in parents:
                raise source.bad(
                    1, f"a block is called {group!r}, the name that laying blocks together gives; rename it"
                )
            parents[group] = None
        below = groups
