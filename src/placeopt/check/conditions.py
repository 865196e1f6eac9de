"""What keeps a job from a start on a node, apart from room; and what labels say."""

from collections.abc import Iterator, Mapping

from placeopt.check.directory import Directory
from placeopt.model import Job, LabelExpression, Node, Taint, Toleration

Barrier = tuple[str, str]
"""A rule that keeps a job off a node, and how."""


def barriers(directory: Directory, job: Job, node: Node) -> Iterator[Barrier]:
    """Yield what keeps a job from a start on a node, apart from room."""
    if node.drained:
        yield "drained", "the node is drained and takes no new work"
    for taint in node.taints:
        if not any(_covers(toleration, taint) for toleration in job.tolerations):
            yield "taints", f"the job does not tolerate {taint.text!r}"
    yield from conditions_unmet(directory, job, node)


def conditions_unmet(directory: Directory, job: Job, node: Node) -> Iterator[Barrier]:
    """Yield the job's own conditions that a node does not meet."""
    if job.nodes_allowed is not None and node.id not in job.nodes_allowed:
        yield "nodes_allowed", f"not among the {len(job.nodes_allowed)} nodes allowed"
    if node.id in job.nodes_excluded:
        yield "nodes_excluded", f"among the {len(job.nodes_excluded)} nodes excluded"
    if not job.node_selector and not job.node_affinity:
        return
    labels = directory.labels_of(node)
    for key, wanted in job.node_selector.items():
        if labels.get(key) != wanted:
            yield "node_selector", f"label {key!r} is {labels.get(key)!r}, the job asks for {wanted!r}"
    if job.node_affinity and not any(term and all(is_met(one, labels) for one in term) for term in job.node_affinity):
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
