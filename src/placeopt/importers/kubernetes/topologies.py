"""Levels of the network that objects state: Topologies of Kueue and KAI, and HyperNodes of Volcano."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.node_selectors import label_selector
from placeopt.importers.kubernetes.nodes import NodeCapacity
from placeopt.importers.kubernetes.pod_groups import TIER

MAX_TIERS = 8
"""HyperNodes inside each other."""


def topology_levels(topologies: Iterable[JsonEntry]) -> list[list[str]]:
    """Return the labels of nodes in each Topology, from the top down; of one that cannot be read none."""
    found = []
    for topology in topologies:
        try:
            found.append([level.text("nodeLabel") for level in topology.entry("spec").entries("levels")])
        except BadInput:
            continue
    return found


def label_hyper_nodes(hyper_nodes: Sequence[JsonEntry], nodes: Mapping[str, NodeCapacity], notes: ImportNotes) -> None:
    """
    Label each node with the HyperNodes in which it is, by number and name of their tiers.

    None is labelled if a HyperNode cannot be read, so that pods with a rule about tiers are left out.
    """
    try:
        members = {one.entry("metadata").text("name"): one.entry("spec") for one in hyper_nodes}
        labels: dict[str, dict[str, str]] = defaultdict(dict)
        for name, spec in members.items():
            tiers = {str(spec.integer("tier", 0, 10**6, 0)), spec.text("tierName", "")} - {""}
            for node in _nodes_of(name, members, nodes, MAX_TIERS):
                labels[node].update({f"{TIER}{tier}": name for tier in tiers})
    except BadInput as error:
        notes.assume(f"HyperNodes are not read: {error}.")
        return
    for node, own in labels.items():
        nodes[node].labels = {**nodes[node].labels, **own}


def _nodes_of(name: str, members: Mapping[str, JsonEntry], nodes: Mapping[str, NodeCapacity], depth: int) -> set[str]:
    """Return the nodes below a HyperNode; ``depth``: of which another may be inside."""
    found: set[str] = set()
    if name not in members or not depth:
        return found
    for member in members[name].entries("members"):
        inner = member.text("type", "Node") == "HyperNode"
        names = [one for one in (members if inner else nodes) if _selected(member.entry("selector"), one, nodes)]
        for one in names:
            found |= _nodes_of(one, members, nodes, depth - 1) if inner else {one}
    return found


def _selected(selector: JsonEntry, name: str, nodes: Mapping[str, NodeCapacity]) -> bool:
    if "exactMatch" in selector:
        return selector.entry("exactMatch").text("name") == name
    if "regexMatch" in selector:
        return _regular(selector.entry("regexMatch")).search(name) is not None
    meets: Callable[[Mapping[str, str]], bool] = label_selector(selector.entry("labelMatch"))
    return name in nodes and meets(nodes[name].labels)


def _regular(entry: JsonEntry) -> re.Pattern[str]:
    """Return an expression; none that could take long to match, which groups and several repetitions can."""
    text = entry.text("pattern")
    try:
        if "(" not in text and sum(map(text.count, "*+{")) <= 1:
            return re.compile(text)
    except re.error:
        pass
    raise entry.bad("pattern", "a regular expression without groups, with at most one repetition")
