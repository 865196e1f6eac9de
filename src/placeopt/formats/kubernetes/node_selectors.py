"""Which nodes a pod accepts: node selectors, required node affinity, tolerations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from placeopt.formats.json_entry import JsonEntry

Accepts = Callable[[str, Mapping[str, str]], bool]
"""Of a node's name and labels."""
KEEPS_OFF = ("NoSchedule", "NoExecute")
"""Effects of taints that keep pods off; PreferNoSchedule does not."""
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def node_affinity(pod: JsonEntry) -> Accepts | None:
    """Return the pod's required node affinity: one of the terms, all expressions of it; None if it has none."""
    required = pod.entry("affinity").entry("nodeAffinity").entry("requiredDuringSchedulingIgnoredDuringExecution")
    return node_selector_terms(required) if "nodeSelectorTerms" in required else None


def node_selector_terms(selector: JsonEntry) -> Accepts:
    """Return whether a node meets a term of a selector, with all its expressions; an empty term meets none."""
    terms = [
        [
            *(_expression(expression, name=False) for expression in term.entries("matchExpressions")),
            *(_expression(expression, name=True) for expression in term.entries("matchFields")),
        ]
        for term in selector.entries("nodeSelectorTerms")
    ]
    return lambda name, labels: any(term and all(expression(name, labels) for expression in term) for term in terms)


def _expression(entry: JsonEntry, *, name: bool) -> Accepts:
    key, operator, values = entry.text("key"), entry.text("operator"), frozenset(entry.words("values"))
    if operator not in OPERATORS or (name and (key != "metadata.name" or operator not in ("In", "NotIn"))):
        raise entry.bad("operator", f"one of {', '.join(OPERATORS)}")
    if operator in ("Gt", "Lt"):
        bound = next(iter(values), "")
        if len(values) != 1 or not _whole(bound):
            raise entry.bad("values", "one whole number")
        sign = 1 if operator == "Gt" else -1
        return lambda _, labels: _whole(labels.get(key, "")) and sign * (int(labels[key]) - int(bound)) > 0
    wanted = operator in ("In", "Exists")
    if operator in ("Exists", "DoesNotExist"):
        return lambda _, labels: (key in labels) == wanted
    if name:
        return lambda node, _: (node in values) == wanted
    return lambda _, labels: (labels.get(key) in values) == wanted


def _whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) < 20


def taint_id(taint: JsonEntry) -> str | None:
    """Return a taint as ``key=value:effect``, None if it keeps no pod off."""
    effect = taint.text("effect")
    return f"{taint.text('key')}={taint.text('value', '')}:{effect}" if effect in KEEPS_OFF else None


def tolerations(pod: JsonEntry) -> list[tuple[str, str, str, str]]:
    """Return a pod's tolerations: key, operator, value and effect of each."""
    tolerated = []
    for entry in pod.entries("tolerations"):
        operator, value = entry.text("operator", "") or "Equal", entry.text("value", "")
        if operator not in ("Exists", "Equal", "Gt", "Lt"):
            raise entry.bad("operator", "one of Exists, Equal, Gt, Lt")
        if operator in ("Gt", "Lt") and not _whole(value):
            raise entry.bad("value", "a whole number")
        tolerated.append((entry.text("key", ""), operator, value, entry.text("effect", "")))
    return tolerated


def tolerated_taints(pod: JsonEntry, taints: Iterable[str]) -> tuple[str, ...]:
    """Return those of the taints that a pod tolerates; raises as `tolerations`."""
    own = tolerations(pod)

    def meets(taint: str) -> bool:
        rest, _, effect = taint.rpartition(":")
        key, _, value = rest.partition("=")
        return any(
            own_effect in ("", effect) and own_key in ("", key) and _meets(own_key == key, operator, own_value, value)
            for own_key, operator, own_value, own_effect in own
        )

    return tuple(taint for taint in taints if meets(taint))


def _meets(named: bool, operator: str, own: str, value: str) -> bool:
    """Tell whether a toleration covers a taint of the same key (``named``), or of any, with this value."""
    if operator == "Exists":
        return True
    if not named:
        return False
    if operator == "Equal":
        return own == value
    return _whole(value) and (int(value) > int(own) if operator == "Gt" else int(value) < int(own))


def label_selector(entry: JsonEntry) -> Callable[[Mapping[str, str]], bool]:
    """Return whether labels meet a selector; an empty one meets all."""
    wanted = entry.texts("matchLabels")
    expressions = [_expression(expression, name=False) for expression in entry.entries("matchExpressions")]
    return lambda labels: (
        all(labels.get(key) == value for key, value in wanted.items())
        and all(expression("", labels) for expression in expressions)
    )
