"""
Slurm's ``topology.conf`` and ``topology.yaml``, of the tree and the block plugin, and ``scontrol show topology``.

topograph writes the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from placeopt.errors import BadInput, Unsupported
from placeopt.importers.fabric import Fabric, level_name, make_fabric
from placeopt.importers.slurm.fields import expand_hosts
from placeopt.importers.source_file import SourceFile
from placeopt.model import BlockSize

_NAMES = frozenset(("switchname", "blockname", "aggregatedblock", "blocksizes"))
_KEYS = _NAMES.union(("switches", "nodes", "linkspeed", "level", "blockindex", "blocksize"))
TOPOLOGY_LINE = re.compile(r"(SwitchName|BlockName|BlockSizes)=|\s*- *topology *:", re.IGNORECASE)
_OF_TOPOLOGY = frozenset(("topology", "cluster_default", "switches", "blocks", "block_sizes", "-"))
_YAML = re.compile(r"\s*- *topology *:")
DEFAULT_SIZES = (1, 2, 4, 8, 16)
"""Sizes of blocks, in blocks, where none are stated."""


@dataclass
class _Stated:
    """What a file states: the switches or blocks in its order, with the nodes and switches below each."""

    nodes: dict[str, list[str]] = field(default_factory=dict)
    below: dict[str, list[str]] = field(default_factory=dict)
    blocks: bool = False
    sizes: list[int] = field(default_factory=list)
    """Of blocks, in nodes."""
    remarks: tuple[str, ...] = ()

    def add(self, name: str, nodes: str, below: str) -> None:
        if name in self.nodes:
            raise ValueError(f"{name[:60]!r} appears twice; expected one line for each switch or block")
        self.nodes[name], self.below[name] = expand_hosts(nodes), expand_hosts(below)


def read_slurm_topology(source: SourceFile) -> Fabric:
    """
    Return the network. Switches or blocks become domains; a node is attached to the lowest one that names it.

    Switches above the same nodes, as the spines of a fat tree, are one domain, called as the first of them. Where
    several have none above them, a job lies under one of these (Slurm without ``TopoOptional``).

    Blocks are grouped by ``BlockSizes`` (in nodes; each a power of two times the first, by default up to 16 times the
    nodes of the first block): consecutive blocks form a larger one, the last of which may be incomplete. A gang lies in
    one block of the first size that holds it, in as few smaller ones as possible (`placeopt.model.BlockSize`).

    Of ``topology.yaml`` the topology of ``cluster_default`` is read, else the first. ``LinkSpeed``, which Slurm ignores
    too, is not read. Raises `BadInput` if a line is malformed, a name is unknown, or switches overlap without one being
    inside the other; `Unsupported` for another plugin than tree and block.
    """
    stated = _read_yaml(source) if source.has(_YAML) else _read_conf(source)
    return _blocks(source, stated) if stated.blocks else _tree(source, stated)


def _read_conf(source: SourceFile) -> _Stated:
    stated = _Stated()
    printed: set[int] = set()
    begun = ""
    for n, line in enumerate([*_plain_lines(source.text), ""], 1):
        begun += line.removesuffix("\\")
        if line.endswith("\\"):  # what goes on stands at the number of its last line
            continue
        line, begun = begun, ""
        try:
            pairs = _pairs(line)
            name = pairs.get("switchname") or pairs.get("blockname")
            if "blocksizes" in pairs:
                stated.sizes = _sizes(pairs["blocksizes"].split(","))
            if "blocksize" in pairs:
                printed |= set(_sizes([pairs["blocksize"]]))
            if name is not None:
                stated.blocks |= "blockname" in pairs
                stated.add(name, pairs.get("nodes", ""), pairs.get("switches", ""))
        except ValueError as error:
            raise source.bad(n, str(error)) from None
    stated.sizes = stated.sizes or sorted(printed)
    return stated


def _plain_lines(text: str) -> list[str]:
    """Return the lines without comments, and without blanks at their ends."""
    return [line.partition("#")[0].rstrip() for line in text.split("\n")]


def _pairs(line: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in line.split():
        key, _, value = word.partition("=")
        if not value or key.lower() not in _KEYS or key.lower() in pairs:
            raise ValueError(f"{word[:60]!r}; expected SwitchName=, BlockName=, Nodes=, Switches= or BlockSizes=")
        pairs[key.lower()] = value
    if pairs and not pairs.keys() & _NAMES:
        raise ValueError("no SwitchName= or BlockName=; expected one on each line")
    return pairs


def _sizes(words: Sequence[str]) -> list[int]:
    sizes = [int(word) for word in words if re.fullmatch(r"[1-9]\d{0,5}", word)]
    parts = [size // sizes[0] for size in sizes if size % sizes[0] == 0]
    if len(parts) != len(words) or sizes != sorted(set(sizes)) or any(part & (part - 1) for part in parts):
        raise ValueError(f"BlockSizes={','.join(words)[:60]!r}; expected growing powers of two of the first")
    return sizes


def _read_yaml(source: SourceFile) -> _Stated:
    stated = _Stated()
    try:
        listed = _yaml_items(source.text)
        chosen = next((one for one in listed if one.get("cluster_default") == "true"), listed[0])
        name, kinds = chosen["topology"][:60], chosen.keys() - _OF_TOPOLOGY
        if len(listed) > 1:
            stated.remarks = (f"Of {len(listed)} topologies {name!r} was read; partitions may name another.",)
        stated.blocks = kinds == {"block"}
        if kinds not in ({"block"}, {"tree"}):
            kind = ", ".join(sorted(kinds))[:60] or "flat"
            raise Unsupported(f"{source.name}: topology {name!r} is {kind}; expected tree or block")
        sizes = [one[""] for one in chosen["-"] if "" in one]
        stated.sizes = _sizes(sizes or re.findall(r"[^\[\], ]+", chosen.get("block_sizes", "")))
        for one in chosen["-"]:
            if "" not in one:
                stated.add(one["block" if stated.blocks else "switch"], one.get("nodes", ""), one.get("children", ""))
    except (KeyError, IndexError) as error:
        raise BadInput(
            f"{source.name}: expected a list of topologies, each with 'topology' and 'tree' or 'block' ({error!r})"
        ) from None
    except ValueError as error:
        raise BadInput(f"{source.name}: {error}") from None
    return stated


def _yaml_items(text: str) -> list[dict[str, Any]]:
    """
    Return the topologies of a text of YAML: texts by key, and as ``-`` the items of lists inside, numbers without key.

    Mappings inside an item are part of it. No more of YAML is read; raises `ValueError` for anything else.
    """
    before, *chunks = re.split(r"^ *-(?: +|$)", "\n".join(_plain_lines(text)), flags=re.MULTILINE)
    found: list[dict[str, Any]] = []
    for chunk in [before, *chunks] if before.strip(" -\n") else chunks:
        item: dict[str, Any] = {"-": []}
        for line in filter(None, map(str.strip, chunk.split("\n"))):
            key, colon, value = (part.strip() for part in line.partition(":"))
            key, value = (key, value) if colon else ("", key)
            if key in item or value[:1] in tuple("{&*!|>"):
                raise ValueError(f"{line[:60]!r}: expected another 'key: value', or a list such as [4, 16]")
            item[key] = value.strip("'\"")
        if "topology" in item:
            found.append(item)
        else:  # what comes after a list belongs to the topology
            found[-1] |= {key: item.pop(key) for key in _OF_TOPOLOGY & item.keys() - {"-"}}
            found[-1]["-"].append(item)
    return found


def _tree(source: SourceFile, stated: _Stated) -> Fabric:
    """Return the domains of switches: one for all that are above the same nodes at the same height."""
    first: dict[tuple[int, frozenset[str], int], str] = {}
    for name, (nodes, height) in _reach(source, stated).items():
        first.setdefault((len(nodes), nodes, height), name)
    parents: dict[str, str | None] = {}
    lowest: dict[str, str] = {}
    highest: dict[str, str] = {}
    inside: dict[str, frozenset[str]] = {}
    for (_, nodes, _), name in sorted(first.items(), key=lambda one: (one[0][0], one[0][2])):
        parents[name], inside[name] = None, nodes
        for below in dict.fromkeys(highest[node] for node in nodes if node in highest):
            if not inside[below] <= nodes:
                raise BadInput(
                    f"{source.name}: switches {below[:60]!r} and {name[:60]!r} share nodes, and each has others; "
                    "expected a tree"
                )
            parents[below] = name
        highest |= dict.fromkeys(nodes, name)
        lowest = dict.fromkeys(nodes, name) | lowest
    order = {node: lowest[node] for listed in stated.nodes.values() for node in listed}
    parents = {name: parents[name] for name in stated.nodes if name in parents}
    return make_fabric(source.name, parents, order, stated.remarks, rooted=True)


def _reach(source: SourceFile, stated: _Stated) -> dict[str, tuple[frozenset[str], int]]:
    """Return the nodes below each switch, and its height."""
    if unknown := {word for below in stated.below.values() for word in below} - stated.nodes.keys():
        raise BadInput(f"{source.name}: {min(unknown)[:60]!r} is a switch below another, and has no line of its own")
    reach: dict[str, tuple[frozenset[str], int]] = {}
    try:
        for name in TopologicalSorter(stated.below).static_order():
            parts = [reach[below] for below in stated.below[name]]
            nodes = frozenset(stated.nodes[name]).union(*(part for part, _ in parts))
            reach[name] = nodes, 1 + max((height for _, height in parts), default=0)
    except CycleError as error:
        raise BadInput(f"{source.name}: {error.args[1][0][:60]!r} stands above itself; expected a tree") from None
    return {name: reach[name] for name in stated.nodes}


def _blocks(source: SourceFile, stated: _Stated) -> Fabric:
    """Put consecutive blocks under larger ones; a size that gathers nothing new is left out."""
    parents: dict[str, str | None] = dict.fromkeys(stated.nodes)
    node_domains: dict[str, str] = {}
    for block, nodes in stated.nodes.items():
        for node in nodes:
            if node_domains.setdefault(node, block) != block:
                raise BadInput(f"{source.name}: node {node[:60]!r} is in blocks {node_domains[node]!r} and {block!r}")
    base = len(next(filter(None, stated.nodes.values()), ()))
    sizes = stated.sizes or [base * count for count in DEFAULT_SIZES]
    below, held = list(stated.nodes), [len(nodes) for nodes in stated.nodes.values()]
    levels = [(sizes[0], max(held, default=0))]
    for before, size in pairwise(sizes):
        if len(below) == 1:
            break
        count = size // before
        groups = [f"block{size}.{number + 1}" for number in range(-(-len(below) // count))]
        for number, name in enumerate(below):
            parents[name] = groups[number // count]
        if taken := next((group for group in groups if group in parents), None):
            raise BadInput(f"{source.name}: a block is called {taken!r}, the name of several together; rename it")
        parents |= dict.fromkeys(groups)
        held = [sum(held[start : start + count]) for start in range(0, len(below), count)]
        below = groups
        levels.append((size, max(held)))
    fabric = make_fabric(source.name, parents, node_domains, stated.remarks)
    block_sizes = tuple(
        BlockSize(level=level_name(height), nodes=size, nodes_max=most if most > size else None)
        for height, (size, most) in enumerate(levels, 1)
    )
    return replace(fabric, block_sizes=block_sizes)
