"""Slurm's nodes: capacity, partitions, features, reservations, and the switches above them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from placeopt.errors import Unsupported
from placeopt.formats.snapshots.entries import Entry
from placeopt.formats.snapshots.found import made
from placeopt.formats.topo.slurm_topology import is_slurm_topology, read_slurm_topology
from placeopt.formats.topo.slurmrest import read_slurmrest
from placeopt.formats.topo.source import read_source
from placeopt.model import Cluster, Node

RESERVED = "reservation"
"""Taint of a node that is kept for a reservation."""


@dataclass(frozen=True)
class Words:
    """What constraints and partitions of jobs go by."""

    partitions: frozenset[str]
    features: frozenset[str]


def read_nodes(path: str | Path, topology: str | Path | None) -> tuple[Cluster, Mapping[str, Words]]:
    """
    Read the list of nodes, and the switches above them.

    Raises
    ------
    BadInput, Unsupported
        As `read_slurm`.
    """
    source = read_source(path)
    try:
        inventory = read_slurmrest(source)
    except Unsupported:
        raise Unsupported(
            f"{source.name}: no list 'nodes', but another of Slurm's; give the output of 'scontrol show nodes --json'"
        ) from None
    entries = Entry(source.name, json.loads(source.text)).entries("nodes")
    words: dict[str, Words] = {}
    nodes: list[Node] = []
    for node, entry in zip(inventory.nodes, entries, strict=True):
        features = [word for text in entry.words("active_features") for word in text.split(",") if word]
        words[node.id] = Words(frozenset(entry.words("partitions")), frozenset(features))
        states = {word.upper() for word in [*entry.words("state"), *entry.words("state_flags")]}
        labels = {**node.labels, **{f"feature:{word}": "yes" for word in features}}
        update = {"labels": labels, "taints": (RESERVED,) if "RESERVED" in states else ()}
        nodes.append(made(Node, entry.where, **{**node.model_dump(), **update}))
    inventory = type(inventory)(inventory.machines, tuple(nodes), inventory.source)
    if topology is None:
        return inventory.cluster(), words
    network = read_source(topology)
    if not is_slurm_topology(network):
        raise Unsupported(f"{network.name}: no SwitchName= or BlockName=; expected Slurm's topology.conf")
    return inventory.cluster(read_slurm_topology(network)), words
