"""Whether a node meets what a job asks, by the text of Kubernetes' documentation: shares no code with the library."""

from placeopt.model import Instance, Job, LabelExpression, Node, Taint, Toleration


def labels_of(round_: Instance, node: Node) -> dict[str, str]:
    """Return a node's own labels, and those that its domains give."""
    labels = {**node.labels, "metadata.name": node.id}
    parent = {domain.id: domain for domain in round_.cluster.domains}
    above = node.domain
    while above is not None:
        labels[parent[above].level] = above
        above = parent[above].parent
    return labels


def _number(text: str) -> int | None:
    try:
        number = int(text) if text == text.strip() and "_" not in text and text.isascii() else None
    except ValueError:
        return None
    return number if number is not None and abs(2 * number + 1) < 2**64 else None


def meets(labels: dict[str, str], expression: LabelExpression) -> bool:
    """One expression."""
    there, wanted = labels.get(expression.key), set(expression.values)
    if expression.operator == "In":
        return there is not None and there in wanted
    if expression.operator == "NotIn":
        return there is None or there not in wanted
    if expression.operator == "Exists":
        return there is not None
    if expression.operator == "DoesNotExist":
        return there is None
    (bound,) = map(int, wanted)
    number = None if there is None else _number(there)
    if number is None:
        return False
    return number > bound if expression.operator == "Gt" else number < bound


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """One toleration and one taint."""
    keys = [toleration.key is None, toleration.key == taint.key]
    effects = [toleration.effect is None, toleration.effect == taint.effect]
    if not any(keys) or not any(effects):
        return False
    if toleration.operator in ("Exists", "Equal"):
        return toleration.operator == "Exists" or toleration.value == taint.value
    number, bound = _number(taint.value), _number(toleration.value)
    assert bound is not None
    return number is not None and ((number > bound) if toleration.operator == "Gt" else (number < bound))


def chosen(round_: Instance, job: Job, node: Node) -> bool:
    """Whether a job's selector, affinity and lists of names let it run on a node."""
    labels = labels_of(round_, node)
    by_name = job.conditions.nodes_allowed is None or node.id in job.conditions.nodes_allowed
    by_affinity = not job.conditions.node_affinity or any(
        bool(term) and all(meets(labels, one) for one in term) for term in job.conditions.node_affinity
    )
    selected = all(labels.get(key) == value for key, value in job.conditions.node_selector.items())
    return by_name and node.id not in job.conditions.nodes_excluded and by_affinity and selected


def admits(round_: Instance, job: Job, node: Node) -> bool:
    """Whether a job may start on a node, were there room."""
    tolerated = all(any(tolerates(one, taint) for one in job.conditions.tolerations) for taint in node.taints)
    return not node.drained and tolerated and chosen(round_, job, node)


def chosen_nodes(round_: Instance, job: Job) -> tuple[str, ...]:
    """Names of the nodes that `chosen` allows."""
    return tuple(node.id for node in round_.cluster.nodes if chosen(round_, job, node))
