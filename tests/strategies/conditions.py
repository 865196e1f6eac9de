"""Labels, taints, and what jobs ask of them: every operator, negated and joined, over what is there, odd or missing."""

from __future__ import annotations

from typing import Any

from placeopt.model import LabelExpression, Taint, Toleration
from strategies.choice import Choice

TAINTS = (Taint(key="old"), Taint(key="loud", value="9", effect="NoExecute"))
LABELS = {"disk": ("ssd", "tape", ""), "cores": ("8", "+9", "16", "-3", "", "many", "9" * 30)}
"""Label -> values of nodes; racks and zones are labels, too."""
VALUES = {
    "disk": ("ssd", "", "hdd"),
    "cores": ("8", "16", "many"),
    "rack": ("r0", "r9"),
    "zone": ("z0",),
    "gone": ("1",),
}
"""Label -> values that jobs name."""
BOUNDS = ("-4", "8", "+9", "15")


def make_labels(choice: Choice) -> dict[str, str]:
    """Some labels of a node."""
    return {label: choice.pick(values) for label, values in LABELS.items() if choice.chance(0.5)}


def make_expression(choice: Choice) -> LabelExpression:
    """One expression."""
    key = choice.pick(tuple(VALUES))
    operator = choice.pick(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    values: Any = ()
    if operator in ("In", "NotIn"):
        values = choice.some(VALUES[key]) or VALUES[key][:1]
    elif operator in ("Gt", "Lt"):
        values = (choice.pick(BOUNDS),)
    return LabelExpression.model_validate({"key": key, "operator": operator, "values": tuple(values)})


def make_affinity(choice: Choice) -> tuple[tuple[LabelExpression, ...], ...]:
    """One or two terms of one or two expressions, rarely of none."""
    expressions = (0, *(1, 1, 2) * 3)
    return tuple(
        tuple(make_expression(choice) for _ in range(choice.pick(expressions))) for _ in range(choice.number(1, 2))
    )


def make_tolerations(choice: Choice) -> tuple[Toleration, ...]:
    """Of the taints of `TAINTS`, each covered or just missed, and of all."""
    loud = {"key": "loud", "operator": choice.pick(("Gt", "Lt")), "value": choice.pick(("8", "9", "10"))}
    among: tuple[dict[str, Any], ...] = (
        *({"key": taint.key, "operator": "Exists"} for taint in TAINTS),
        *({"key": "loud", "value": value} for value in ("9", "8")),
        {"key": "loud", "operator": "Exists", "effect": choice.pick(("NoSchedule", "NoExecute"))},
        loud,
        {"operator": "Exists", "effect": choice.pick(("NoSchedule", "NoExecute"))},
    )
    return tuple(Toleration.model_validate(fields) for fields in choice.some(among, 0.3))
