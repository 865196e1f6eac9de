"""
Conditions on nodes, expressions over labels, taints and tolerations, with the names and rules of Kubernetes; relations.

Relations between jobs: near others, or apart from them, by a selector over the labels of jobs.

They are data. Whether a node meets them is judged when a round is compiled, so that nodes which are added, changed or
imagined are judged as all others.
"""

import re
from collections.abc import Mapping
from itertools import product
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from placeopt.model.base import HashedDict, Id, Labels, LabelValue, Record

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
Effect = Literal["NoSchedule", "NoExecute"]
NODE_NAME = "metadata.name"
"""Key that stands for the name of the node among its labels, as in the fields of Kubernetes' node affinity."""
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_INT64 = range(-(2**63), 2**63)


def label_integer(value: str) -> int | None:
    """Return the integer that a label's value states, of 64 bits as in Kubernetes; None if it states none."""
    number = int(value) if len(value) <= 253 and _INTEGER.match(value) else None
    return number if number is not None and number in _INT64 else None


class LabelExpression(Record):
    """
    A condition on one effective label of a node.

    A node without the label meets ``NotIn`` and ``DoesNotExist`` alone; a value that is no integer meets neither ``Gt``
    nor ``Lt``.
    """

    key: Id
    """The label; ``metadata.name``: the node's name."""
    operator: Operator
    """``Gt`` and ``Lt``: the node's value is above, or below, the stated one."""
    values: Annotated[tuple[LabelValue, ...], AfterValidator(lambda values: tuple(sorted(set(values))))] = ()
    """Of ``In`` and ``NotIn`` at least one, of ``Gt`` and ``Lt`` one integer, of the others none."""

    @model_validator(mode="after")
    def _values(self) -> Self:
        count, operator = len(self.values), self.operator
        if operator in ("In", "NotIn") and not count:
            raise ValueError(f"values: none, expected at least one with {operator}")
        if operator in ("Exists", "DoesNotExist") and count:
            raise ValueError(f"values: {list(self.values)}, expected none with {operator}")
        if operator in ("Gt", "Lt") and (count != 1 or label_integer(self.values[0]) is None):
            raise ValueError(f"values: {list(self.values)}, expected one integer with {operator}")
        return self

    @property
    def bound(self) -> int:
        """The integer of ``Gt`` and ``Lt``."""
        return int(self.values[0])

    def accepts(self, value: str | None) -> bool:
        """Return whether a label's value meets the condition; None: there is no such label."""
        if self.operator in ("Exists", "DoesNotExist"):
            return (value is not None) == (self.operator == "Exists")
        if self.operator in ("In", "NotIn"):
            return (value in self.values) == (self.operator == "In")
        number = None if value is None else label_integer(value)
        if number is None:
            return False
        return number > self.bound if self.operator == "Gt" else number < self.bound

    @property
    def text(self) -> str:
        """The condition as ``kubectl`` writes selectors: ``pool in (a, b)``, ``!gpu``, ``cores > 8``."""
        if self.operator in ("Exists", "DoesNotExist"):
            return self.key if self.operator == "Exists" else f"!{self.key}"
        if self.operator in ("In", "NotIn"):
            return f"{self.key} {self.operator.lower()} ({', '.join(self.values)})"
        return f"{self.key} {'>' if self.operator == 'Gt' else '<'} {self.values[0]}"


class Taint(Record):
    """A mark of a node that keeps off jobs which do not tolerate it."""

    key: Id
    """Name of the taint."""
    value: LabelValue = ""
    """Its value."""
    effect: Effect = "NoSchedule"
    """Both effects keep off what would start; what runs stays."""

    @property
    def text(self) -> str:
        """The taint as ``kubectl taint`` writes it: ``key=value:effect``."""
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


class Toleration(Record):
    """What a job tolerates: one taint, or all of a key, an effect, or all."""

    key: Id | None = None
    """Key of the taints; null: of every key, with ``Exists``."""
    operator: Literal["Equal", "Exists", "Gt", "Lt"] = "Equal"
    """How the taint's value is: equal to ``value``, whatever it is, or an integer above or below ``value``."""
    value: LabelValue = ""
    """Compared with the taint's value."""
    effect: Effect | None = None
    """Effect of the taints; null: every effect."""

    @model_validator(mode="after")
    def _comparison(self) -> Self:
        if self.key is None and self.operator != "Exists":
            raise ValueError("key: null, expected a key; a toleration of every key has the operator 'Exists'")
        if self.operator == "Exists" and self.value:
            raise ValueError(f"value: {self.value!r}, expected none with 'Exists'")
        if self.operator in ("Gt", "Lt") and label_integer(self.value) is None:
            raise ValueError(f"value: {self.value!r}, expected an integer with {self.operator!r}")
        return self

    def tolerates(self, taint: Taint) -> bool:
        """Return whether it covers a taint."""
        if self.effect not in (None, taint.effect) or self.key not in (None, taint.key):
            return False
        if self.operator == "Exists":
            return True
        if self.operator == "Equal":
            return self.value == taint.value
        number, bound = label_integer(taint.value), int(self.value)
        return number is not None and (number > bound if self.operator == "Gt" else number < bound)

    @property
    def text(self) -> str:
        """The toleration in the form of a taint, such as ``key=value:effect``; ``*`` is every key."""
        sign = {"Exists": "", "Equal": "=", "Gt": ">", "Lt": "<"}[self.operator]
        return f"{self.key or '*'}{sign}{self.value}" + (f":{self.effect}" if self.effect else "")


class NodeConditions(Record):
    """What a job asks of its nodes, or a group of workers beside its job and the groups above: a node must meet all."""

    node_selector: Labels = Field(default_factory=HashedDict)
    """Effective labels that a node must carry."""
    node_affinity: tuple[tuple[LabelExpression, ...], ...] = ()
    """
    Terms: a node must meet one of them, with all its expressions. A term without expressions admits no node; without
    terms every node is admitted.
    """
    nodes_allowed: tuple[Id, ...] | None = None
    """Names of the nodes on which it may run, whether or not they are there; null: all nodes."""
    nodes_excluded: tuple[Id, ...] = ()
    """Names of nodes on which it may not run."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that it tolerates, beside those that its job and the groups above do."""

    @property
    def restricts(self) -> bool:
        """Whether it keeps any node off, taints aside."""
        return bool(self.node_selector or self.node_affinity or self.nodes_excluded) or self.nodes_allowed is not None

    def __and__(self, other: Self) -> "NodeConditions":
        """Return the conditions of both together, with the tolerations of both."""
        if ANY_NODE in (self, other):
            return other if self == ANY_NODE else self
        selector = {**self.node_selector, **other.node_selector}
        terms, more = self.node_affinity, other.node_affinity
        if terms and more:
            terms = tuple((*a, *b) for a, b in product(filter(None, terms), filter(None, more))) or ((),)
        if any(selector[key] != value for key, value in self.node_selector.items()):
            terms = ((),)
        names = [allowed for allowed in (self.nodes_allowed, other.nodes_allowed) if allowed is not None]
        return NodeConditions(
            node_selector=selector,
            node_affinity=tuple(dict.fromkeys(terms or more)),
            nodes_allowed=tuple(name for name in names[0] if name in names[-1]) if names else None,
            nodes_excluded=tuple(dict.fromkeys((*self.nodes_excluded, *other.nodes_excluded))),
            tolerations=tuple(dict.fromkeys((*self.tolerations, *other.tolerations))),
        )


ANY_NODE = NodeConditions()
"""They ask nothing."""


MAX_RELATION_WEIGHT = 1000


class Relation(Record):
    """
    Where the workers of a job may be, beside the workers of other jobs and beside each other.

    It says something of workers that start: of the job that has it and, of ``apart``, also of the jobs that it selects.
    A running job that stays where it is, whole or shrunk, breaks no relation by itself. What runs and stays, starts or
    moves is judged on the resulting plan.

    ``apart``: No worker of the job is in one domain with another worker of a selected job, unless both stay. It holds
    both ways: a running job's relation keeps off selected jobs that start. A job that it selects itself has at most one
    worker in a domain. A worker in no domain of the level is apart from all.

    ``near``: Each worker of the job that starts is in a domain of the level, and this domain is *open*: it has a worker
    of a selected job that stays, or that does not have this very relation. So jobs that want each other may start
    together. Beside these, one domain is opened by jobs that have the relation and that it selects, if no selected job
    that runs when the round begins, and stays or moves, has a worker in another domain. (Kubernetes: the first pod of
    those with affinity to each other.)

    One with ``weight`` is soft. It costs its weight by ``weights.relations`` for each worker of the job, running ones
    too, with another worker of a selected job in its domain (``apart``), or without one (``near``).
    """

    kind: Literal["near", "apart"]
    """Which of the two."""
    level: Id
    """``node``, or an effective label of nodes, such as a domain level, whose values are then the domains."""
    selector: Annotated[tuple[LabelExpression, ...], Field(max_length=100)] = ()
    """It selects the jobs whose labels meet all of these; empty: every job."""
    weight: Annotated[int, Field(ge=1, le=MAX_RELATION_WEIGHT)] | None = None
    """What a broken one costs a worker; null: it must hold."""

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return whether it selects the jobs with these labels."""
        return all(expression.accepts(labels.get(expression.key)) for expression in self.selector)

    @property
    def text(self) -> str:
        """The relation in words."""
        jobs = " and ".join(expression.text for expression in self.selector) or "any labels"
        return f"{'near to' if self.kind == 'near' else 'apart from'} jobs with {jobs} by {self.level}"
