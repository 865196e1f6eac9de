"""What pods ask of nodes, as data: node selectors, required node affinity, tolerations; and the taints of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import get_args

from placeopt.documents.faults import make_record
from placeopt.importers.json_entry import JsonEntry
from placeopt.model import LabelExpression, Taint, Toleration
from placeopt.model.conditions import NODE_NAME, Effect, Operator

Term = tuple[LabelExpression, ...]
KEEPS_OFF = get_args(Effect)
"""Effects of taints that keep pods off; PreferNoSchedule does not."""
MOST_TERMS = 100
"""Terms of a pod together with those of its volumes: each of the one goes with each of the others."""


@dataclass(frozen=True)
class NodeConditions:
    """Conditions on a node beside its taints, in the fields of `placeopt.model.Job`."""

    node_affinity: tuple[Term, ...] = ()
    nodes_allowed: tuple[str, ...] | None = None
    nodes_excluded: tuple[str, ...] = ()
    unread: str | None = None
    """Why the conditions cannot be said in these fields."""

    def __and__(self, other: NodeConditions) -> NodeConditions:
        """Return the conditions of both together."""
        if other == EVERY_NODE or self == EVERY_NODE:
            return self if other == EVERY_NODE else other
        mine, theirs = self.node_affinity or ((),), other.node_affinity or ((),)
        terms = [(*one, *more) if one and more else one or more for one in mine for more in theirs]
        never = NO_NODE.node_affinity in (self.node_affinity, other.node_affinity)
        allowed = [names for names in (self.nodes_allowed, other.nodes_allowed) if names is not None]
        unread = self.unread or other.unread
        if len(terms) > MOST_TERMS:
            terms, unread = [], "with node affinity of too many terms, together with that of its volumes"
        return NodeConditions(
            NO_NODE.node_affinity if never else tuple(dict.fromkeys(filter(None, terms))),
            tuple(name for name in allowed[0] if name in allowed[-1]) if allowed else None,
            tuple(dict.fromkeys((*self.nodes_excluded, *other.nodes_excluded))),
            unread,
        )


EVERY_NODE = NodeConditions()
NO_NODE = NodeConditions(((),))


def where(key: str, operator: Operator, *values: str) -> NodeConditions:
    """Return a condition on one label."""
    return NodeConditions(((LabelExpression(key=key, operator=operator, values=values),),))


def node_affinity(pod: JsonEntry) -> NodeConditions:
    """Return the pod's required node affinity."""
    required = pod.entry("affinity").entry("nodeAffinity").entry("requiredDuringSchedulingIgnoredDuringExecution")
    return node_selector_terms(required) if "nodeSelectorTerms" in required else EVERY_NODE


def node_selector_terms(selector: JsonEntry) -> NodeConditions:
    """
    Return a selector: a node meets one of its terms, with all expressions; an empty term meets none.

    Names that all terms state alike are the job's names of nodes; others are expressions about the name.
    """
    labels: list[Term] = []
    names: list[Term] = []
    for entry in selector.entries("nodeSelectorTerms"):
        term, named = (tuple(map(_expression, entry.entries(key))) for key in ("matchExpressions", "matchFields"))
        if any(one.key != NODE_NAME or one.operator not in ("In", "NotIn") for one in named):
            raise entry.bad("matchFields", f"{NODE_NAME} with the operator In or NotIn")
        if term or named:
            labels.append(term)
            names.append(named)
    if not labels:
        return NO_NODE
    if len(set(names)) > 1:
        return NodeConditions(tuple((*term, *named) for term, named in zip(labels, names, strict=True)))
    conditions = NodeConditions(tuple(labels) if all(labels) else ())
    for one in names[0]:
        allowed = one.operator == "In"
        conditions &= NodeConditions((), one.values if allowed else None, () if allowed else one.values)
    return conditions


def _expression(entry: JsonEntry) -> LabelExpression:
    fields = {"key": entry.text("key"), "operator": entry.text("operator"), "values": tuple(entry.words("values"))}
    return make_record(LabelExpression, entry.where, **fields)


def label_selector(entry: JsonEntry) -> Callable[[Mapping[str, str]], bool]:
    """Return whether labels meet a selector; an empty one meets all."""
    expressions = selector_expressions(entry)
    return lambda labels: all(expression.accepts(labels.get(expression.key)) for expression in expressions)


def selector_expressions(entry: JsonEntry) -> Term:
    """Return a label selector as expressions, all of which must hold."""
    wanted = sorted(entry.texts("matchLabels").items())
    exact = [{"key": key, "operator": "In", "values": (value,)} for key, value in wanted]
    made = [make_record(LabelExpression, entry.where, **fields) for fields in exact]
    return tuple(dict.fromkeys([*made, *map(_expression, entry.entries("matchExpressions"))]))


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
