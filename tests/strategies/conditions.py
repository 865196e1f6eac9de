"""Labels, taints, and what jobs ask of them: every operator, negated and joined, over what is there, odd or missing."""

from __future__ import annotations

from typing import Any

from placeopt import build
from placeopt.model import Domain, Instance, LabelExpression, Node, Taint, Toleration
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
    "metadata.name": ("n0", "n1", "n9"),
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


def make_conditions(choice: Choice, nodes: list[str]) -> dict[str, Any]:
    """Return what a job asks of nodes, each kind now and then; names of nodes may be of none."""
    names = [*nodes, "gone"]
    return {
        "node_selector": make_labels(choice) if choice.chance(0.3) else {},
        "node_affinity": make_affinity(choice) if choice.chance(0.8) else (),
        "nodes_allowed": tuple(choice.some(names, 0.7)) if choice.chance(0.2) else None,
        "nodes_excluded": tuple(choice.some(names, 0.3)) if choice.chance(0.2) else (),
        "tolerations": make_tolerations(choice),
    }


def make_choosy_round(choice: Choice, *, nodes: int = 7, jobs: int = 5, drained: float = 0.1) -> Instance:
    """Return nodes in racks of a zone or beside it, with room for all, and jobs of one GPU that choose among them."""

    def one(i: int) -> Node:
        return build.node(
            f"n{i}",
            labels=make_labels(choice),
            taints=tuple(choice.some(TAINTS, 0.2)),
            drained=choice.chance(drained),
            domain=choice.pick(("r0", "r1", "r2", None)),
        )

    domains: Any = [Domain(id="z0", level="zone")]
    domains += [Domain(id=f"r{i}", parent="z0" if i else None) for i in range(3)]
    made = [one(i) for i in range(nodes)]
    names = [node.id for node in made]
    machine = build.machine(gpus=jobs)
    return build.instance(
        made,
        [build.job(f"j{i}", **make_conditions(choice, names)) for i in range(jobs)],
        machines=[machine],
        domains=domains,
    )
