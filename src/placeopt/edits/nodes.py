"""Nodes like a node, and one more node of a type: the same for all who ask."""

from __future__ import annotations

from collections.abc import Container

from placeopt.model import Cluster, Node

HOSTNAME = "kubernetes.io/hostname"
"""Label of a node's host, which may differ from the node's name."""
STATE_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/", "ToBeDeletedByCluster")
"""Keys, by their beginning, of taints that say in which state a node is: not ready, under pressure, to be deleted."""


def copy_of(node: Node, new_id: str) -> Node:
    """
    Return a node like another one that takes new work.

    A label that holds its id or its hostname is its own, and it is in no state that taints tell of.
    """
    labels = {name: new_id if value == node.id or name == HOSTNAME else value for name, value in node.labels.items()}
    taints = tuple(taint for taint in node.taints if not taint.key.startswith(STATE_TAINTS))
    own = {"id": new_id, "labels": labels, "taints": taints, "drained": False, "origin": None}
    return node.model_copy(update=own)


def node_of_type(cluster: Cluster, machine: str, new_id: str = "added") -> Node:
    """
    Return one more node of a machine type: what all nodes of the type share, and nothing else.

    These are labels (one that holds each node's id, as a hostname, is the new node's own), taints and the domain; the
    price is the lowest of theirs.
    """
    of_type = [copy_of(node, new_id) for node in cluster.nodes if node.machine == machine]
    if not of_type:
        return Node(id=new_id, machine=machine)
    labels = set.intersection(*(set(node.labels.items()) for node in of_type))
    taints = set.intersection(*(set(node.taints) for node in of_type))
    domains = {node.domain for node in of_type}
    return Node(
        id=new_id,
        machine=machine,
        domain=domains.pop() if len(domains) == 1 else None,
        labels=dict(sorted(labels)),
        taints=tuple(taint for taint in of_type[0].taints if taint in taints),
        price_milli_per_hour=min(map(cluster.price_of, of_type)),
    )


def free_prefix(cluster: Cluster) -> str:
    """Return ``added``, or that with primes, so that no node's id begins with it."""
    prefix = "added"
    while any(node.id.startswith(prefix) for node in cluster.nodes):
        prefix += "'"
    return prefix


def free_name(name: str, used: Container[str]) -> str:
    """Return a name, with as many primes as make it none of those that are used."""
    while name in used:
        name = f"{name[-252:]}'"
    return name
