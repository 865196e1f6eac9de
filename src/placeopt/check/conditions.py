"""What keeps a job from a start on a node, apart from room; and what labels say."""

from collections.abc import Iterator, Mapping

from placeopt.check.directory import Directory
from placeopt.model import Group, LabelExpression, Node, NodeConditions, Taint, Toleration

Barrier = tuple[str, str]
"""A rule that keeps a job off a node, and how."""


def barriers(directory: Directory, node: Node, *asked: NodeConditions) -> Iterator[Barrier]:
    """Yield what keeps workers from a start on a node, apart from room; ``asked``: by their job and their groups."""
    if node.drained:
        yield "drained", "the node is drained and takes no new work"
    for taint in node.taints:
        if not any(_covers(toleration, taint) for asks in asked for toleration in asks.tolerations):
            yield "taints", f"the job does not tolerate {taint.text!r}"
    yield from conditions_unmet(directory, node, *asked)


def conditions_of_leaf(group: Group, leaf: str | None) -> list[NodeConditions] | None:
    """Return what a group and those below it on the way to a leaf ask of nodes; None: the leaf is not below it."""
    own = [group.conditions]
    if not group.groups:
        return own if leaf in (None, group.id) else None
    below = (conditions_of_leaf(part, leaf) for part in group.groups)
    found = next((conditions for conditions in below if conditions is not None), None)
    return None if found is None else own + found


def conditions_unmet(directory: Directory, node: Node, *asked: NodeConditions) -> Iterator[Barrier]:
    """Yield the conditions of a job, and of groups of it, that a node does not meet."""
    for asks in asked:
        if asks.nodes_allowed is not None and node.id not in asks.nodes_allowed:
            yield "nodes_allowed", f"not among the {len(asks.nodes_allowed)} nodes allowed"
        if node.id in asks.nodes_excluded:
            yield "nodes_excluded", f"among the {len(asks.nodes_excluded)} nodes excluded"
        labels = directory.labels_of(node) if asks.node_selector or asks.node_affinity else {}
        for key, wanted in asks.node_selector.items():
            if labels.get(key) != wanted:
                yield "node_selector", f"label {key!r} is {labels.get(key)!r}, the job asks for {wanted!r}"
        terms = asks.node_affinity
        if terms and not any(term and all(is_met(one, labels) for one in term) for term in terms):
            yield "node_affinity", "its labels meet none of the terms"


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.key is not None and toleration.key != taint.key:
        return False
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    return toleration.operator == "Exists" or _compares(toleration.operator, taint.value, toleration.value)


def is_met(expression: LabelExpression, labels: Mapping[str, str]) -> bool:
    """Return whether labels meet an expression."""
    stated = expression.key in labels
    if expression.operator == "Exists":
        return stated
    if expression.operator == "DoesNotExist":
        return not stated
    if not stated:
        return expression.operator == "NotIn"
    return _compares(expression.operator, labels[expression.key], *expression.values)


def _compares(operator: str, own: str, *values: str) -> bool:
    if operator in ("Gt", "Lt"):
        number = _integer(own)
        return number is not None and (number > int(values[0]) if operator == "Gt" else number < int(values[0]))
    return (own in values) != (operator == "NotIn")


def _integer(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
