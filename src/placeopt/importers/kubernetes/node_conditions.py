"""
What pods ask of nodes, as data: node selectors, required node affinity, tolerations, and volumes; and taints of nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, get_args

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.objects import Listed, by_id, unreadable_field
from placeopt.model import LabelExpression, NodeConditions, Taint, Toleration
from placeopt.model.conditions import ANY_NODE, NODE_NAME, Effect, Operator

if TYPE_CHECKING:
    from placeopt.importers.kubernetes.pods import Pod

Term = tuple[LabelExpression, ...]
KEEPS_OFF = get_args(Effect)
"""Effects of taints that keep pods off; PreferNoSchedule does not."""
ZONES = tuple(
    f"{prefix}.kubernetes.io/{kind}" for prefix in ("topology", "failure-domain.beta") for kind in ("zone", "region")
)
"""Labels of a volume that a node which carries any of them must share; several values are joined by ``__``."""
MOST_TERMS = 100
"""Terms of a pod together with those of its volumes: each of the one goes with each of the others."""


NO_NODE = NodeConditions(node_affinity=((),))
Unread = str
"""Why conditions cannot be said, in place of them."""


def both(one: NodeConditions | Unread, other: NodeConditions | Unread) -> NodeConditions | Unread:
    """Return the conditions of two together."""
    if isinstance(one, str) or isinstance(other, str):
        return one if isinstance(one, str) else other
    if other is ANY_NODE:
        return one
    if len(one.node_affinity) * len(other.node_affinity) > MOST_TERMS:
        return "with node affinity of too many terms, together with that of its volumes"
    return one & other


def where(key: str, operator: Operator, *values: str) -> NodeConditions:
    """Return a condition on one label."""
    return NodeConditions(node_affinity=((LabelExpression(key=key, operator=operator, values=values),),))


def asked_of_nodes(pod: JsonEntry) -> NodeConditions:
    """Return what a pod's specification asks: by its node selector, required node affinity, and tolerations."""
    asked = {"node_selector": pod.texts("nodeSelector"), "tolerations": tolerations(pod)}
    return make_record(NodeConditions, pod.where, **asked) & node_affinity(pod)


def node_affinity(pod: JsonEntry) -> NodeConditions:
    """Return the pod's required node affinity."""
    affinity = pod.entry("affinity").entry("nodeAffinity")
    return node_selector_terms(affinity.entry("requiredDuringSchedulingIgnoredDuringExecution"))


def node_selector_terms(selector: JsonEntry) -> NodeConditions:
    """
    Return a selector: a node meets one of its terms, with all expressions; an empty term meets none.

    Without a list of terms it allows every node. Names that all terms state alike are the job's names of nodes; others
    are expressions about the name.
    """
    if "nodeSelectorTerms" not in selector:
        return ANY_NODE
    labels: list[Term] = []
    names: list[Term] = []
    for entry in selector.entries("nodeSelectorTerms"):
        term, named = (_expressions(entry, key) for key in ("matchExpressions", "matchFields"))
        if any(one.key != NODE_NAME or one.operator not in ("In", "NotIn") for one in named):
            raise entry.bad("matchFields", f"{NODE_NAME} with the operator In or NotIn")
        if term or named:
            labels.append(term)
            names.append(named)
    if not labels:
        return NO_NODE
    if len(set(names)) > 1:
        return NodeConditions(node_affinity=tuple((*term, *named) for term, named in zip(labels, names, strict=True)))
    conditions = NodeConditions(node_affinity=tuple(labels) if all(labels) else ())
    for one in names[0]:
        is_in = one.operator == "In"
        conditions &= NodeConditions(nodes_allowed=one.values) if is_in else NodeConditions(nodes_excluded=one.values)
    return conditions


def _expressions(entry: JsonEntry, field: str) -> Term:
    """Return the expressions of a list; where it states no operator, those of storage classes, they mean one of."""
    return tuple(
        make_record(
            LabelExpression,
            one.where,
            key=one.text("key"),
            operator=one.text("operator", "In" if field == "matchLabelExpressions" else None),
            values=tuple(one.words("values")),
        )
        for one in entry.entries(field)
    )


def label_selector(entry: JsonEntry) -> Callable[[Mapping[str, str]], bool]:
    """Return whether labels meet a selector; an empty one meets all."""
    expressions = selector_expressions(entry)
    return lambda labels: all(expression.accepts(labels.get(expression.key)) for expression in expressions)


def selector_expressions(entry: JsonEntry) -> Term:
    """Return a label selector as expressions, all of which must hold."""
    wanted = sorted(entry.texts("matchLabels").items())
    at = entry.where
    made = [make_record(LabelExpression, at, key=key, operator="In", values=(value,)) for key, value in wanted]
    return tuple(dict.fromkeys([*made, *_expressions(entry, "matchExpressions")]))


def taint(entry: JsonEntry) -> Taint | None:
    """Return a taint, None if it keeps no pod off."""
    effect = entry.text("effect")
    if effect not in KEEPS_OFF:
        return None
    return make_record(Taint, entry.where, key=entry.text("key"), value=entry.text("value", ""), effect=effect)


def tolerations(pod: JsonEntry) -> tuple[Toleration, ...]:
    """Return a pod's tolerations of taints that keep pods off."""
    tolerated = []
    for entry in pod.entries("tolerations"):
        effect, operator = entry.text("effect", ""), entry.text("operator", "") or "Equal"
        if effect in ("", *KEEPS_OFF):
            fields = {
                "key": entry.text("key", "") or None,
                "operator": operator,
                "value": "" if operator == "Exists" else entry.text("value", ""),
                "effect": effect or None,
            }
            tolerated.append(make_record(Toleration, entry.where, **fields))
    return tuple(dict.fromkeys(tolerated))


class Volumes:
    """
    Volume claims, volumes and storage classes as they were listed, by kind.

    ``pods``: All of them: a claim that only one pod may use is full if another names it.
    """

    def __init__(self, listed: Listed, pods: Iterable[Pod], notes: ImportNotes) -> None:
        self._claims = by_id(listed.get("PersistentVolumeClaim", []))
        self._volumes = by_id(listed.get("PersistentVolume", []))
        self._classes = by_id(listed.get("StorageClass", []))
        self._users = Counter(f"{pod.namespace}/{claim}" for pod in pods for claim in pod.claims)
        self._notes = notes

    def read(self, pod: Pod) -> NodeConditions | Unread:
        """Return which nodes the volumes of a pod allow, or why that is not known."""
        conditions: NodeConditions | Unread = ANY_NODE
        for name, template_class in pod.claims.items():
            claim = self._claims.get(f"{pod.namespace}/{name}")
            try:
                if claim is not None:
                    read = self._claim(claim, self._users[f"{pod.namespace}/{name}"])
                elif template_class is not None:
                    read = self._unbound(template_class)
                else:
                    read = "with volume claims that are not listed (get persistentvolumeclaims,persistentvolumes too)"
            except BadInput as error:
                read = f"with a volume {unreadable_field(claim or pod.entry, error)}"
            conditions = both(conditions, read)
        return conditions

    def _claim(self, claim: JsonEntry, users: int) -> NodeConditions | Unread:
        """Return which nodes the volume of a claim allows, or why that is not known; ``users``: pods that name it."""
        spec = claim.entry("spec")
        if "ReadWriteOncePod" in spec.words("accessModes") and users > 1:
            return "with a volume claim for one pod alone (ReadWriteOncePod) that another pod names"
        if "volumeName" not in spec or not spec.text("volumeName"):
            return self._unbound(spec.text("storageClassName", ""))
        volume = self._volumes.get(f"default/{spec.text('volumeName')}")
        return "with volumes that are not listed (get persistentvolumes too)" if volume is None else _volume(volume)

    def _unbound(self, name: str) -> NodeConditions | Unread:
        """Return on which nodes a volume of a storage class can be made, once its pod has a node."""
        if not name:
            return "with a volume claim that is not bound"
        found = self._classes.get(f"default/{name}")
        if found is None:
            self._notes.assume("Storage classes that are not listed make their volumes on the node of the pod.")
            return ANY_NODE
        if found.text("volumeBindingMode", "Immediate") != "WaitForFirstConsumer":
            return "with a volume claim that is not bound"
        if found.text("provisioner", "") == "kubernetes.io/no-provisioner":
            return "with a volume claim for one of the volumes that some nodes have"
        self._notes.assume("How much storage there is for volumes that are made on the node of their pod is not read.")
        terms = found.entries("allowedTopologies")
        allowed = filter(None, (_expressions(term, "matchLabelExpressions") for term in terms))
        return NodeConditions(node_affinity=tuple(allowed))


def _volume(entry: JsonEntry) -> NodeConditions:
    """Return the conditions of a volume: its node affinity; a node with labels of zones must share the volume's."""
    conditions = node_selector_terms(entry.entry("spec").entry("nodeAffinity").entry("required"))
    labels = entry.entry("metadata").texts("labels")
    if any(labels.get(key) for key in ZONES):
        without = tuple(LabelExpression(key=key, operator="DoesNotExist") for key in ZONES)
        zones = {key: tuple(labels[key].split("__")) for key in ZONES if labels.get(key)}
        within = tuple(LabelExpression(key=key, operator="In", values=values) for key, values in zones.items())
        conditions &= NodeConditions(node_affinity=(within, without))
    return conditions
