"""What Slurm's jobs ask of their nodes: features, partitions, reservations, names, sizes; and whose jobs are beside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from placeopt.documents.faults import make_record
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.slurm.fields import Features, parse_constraint
from placeopt.importers.slurm.job_requests import exclusive_of
from placeopt.importers.slurm.lists import JobLeftOut, expand_node_list, is_set, slurm_number
from placeopt.importers.slurm.nodes import AT_LEAST, RESERVED, YES, SlurmNode
from placeopt.model import LabelExpression, NodeConditions, Relation, Toleration
from placeopt.model.conditions import Operator

TOLERATES = Toleration(key=RESERVED.key, operator="Exists")
"""Of a job with a reservation."""
ASKS = ("partition", "resv_name", "features", "prefer", "required_nodes", "excluded_nodes", *AT_LEAST)
"""Fields of a job by which it chooses nodes."""
_BRACKETS = re.compile(r"(?:([^\[\]]*)[&,])?\[([^\[\]]*)\](?:[&,]([^\[\]]*))?")
_COUNT = re.compile(r"(\([^()]*\)|[^&|,()*\[\]]+)\*([1-9][0-9]{0,5})")
_UNREAD = "a constraint about several nodes together, or one that cannot be read"
Terms = tuple[Features, ...]
"""Labels, all of one of which a node must have."""
ANYTHING: Terms = (Features(),)


class Asked(NamedTuple):
    """
    What a job asks of its nodes.

    ``ways``: Alternatives by name; all its nodes meet one of them. ``some``: How many of its nodes, different ones for
    each entry, meet more.
    """

    ways: Mapping[str, NodeConditions]
    some: Sequence[tuple[int, NodeConditions]]


def asked_of_nodes(entry: JsonEntry, nodes: Mapping[str, SlurmNode], *, one_node: bool) -> Asked:
    """
    Return what a job asks of its nodes: by labels, and by name where the user wrote names.

    All nodes are of one partition and one reservation of those listed, and meet ``--constraint``, or ``--prefer`` in
    its place. ``one_node``: There is one, so that all alternatives are conditions of its own. Raises `JobLeftOut` if a
    constraint cannot be read, or the nodes of reservations are not listed.
    """
    partitions, reservations = (
        {name: f"{kind}:{name}" for name in entry.text(key, "").split(",") if name}
        for kind, key in (("partition", "partition"), ("reservation", "resv_name"))
    )
    if reservations and not any(one.node.labels.keys() & reservations.values() for one in nodes.values()):
        raise JobLeftOut("waits in a reservation whose nodes are not listed")
    sets, counted = _constraint(entry.text("features", ""))
    if is_set(entry.raw("prefer")):
        preferred, more = _constraint(entry.text("prefer"))
        if more or counted:
            raise JobLeftOut("asks for --prefer, and for so many nodes with a feature")
        sets = [*preferred, *sets]
    ways: dict[str, tuple[Features, Terms]] = {}
    for partition, reservation, terms in product(partitions or [""], reservations or [""], sets):
        selector = Features({partitions.get(partition, ""), reservations.get(reservation, "")} - {""})
        features = "|".join("&".join(sorted(label.partition(":")[2] for label in term)) for term in terms)
        parts = ((partition, partitions), (reservation, reservations), (features, sets))
        name = ":".join(part for part, others in parts if len(others) > 1)
        ways[name if len(name) < 200 else f"way{len(ways)}"] = selector, terms
    if one_node:
        shared = Features.intersection(*(selector for selector, _ in ways.values()))
        ways = {"": (shared, tuple((every - shared) | term for every, terms in ways.values() for term in terms))}
    required = tuple(expand_node_list(entry, "required_nodes"))
    fields: dict[str, Any] = {
        "nodes_excluded": tuple(expand_node_list(entry, "excluded_nodes")),
        "tolerations": (TOLERATES,) if reservations else (),
    }
    stated = {key: label for key, (label, _) in AT_LEAST.items() if is_set(entry.raw(key))}
    if missing := [key for key, label in stated.items() if not any(label in one.node.labels for one in nodes.values())]:
        raise JobLeftOut(f"states {missing[0]}, and nodes do not")
    above = {label: str((slurm_number(entry, key) or 0) - 1) for key, label in stated.items()}
    sizes = [_expression(entry, label, "Gt", number) for label, number in above.items()]
    conditions = {
        name: make_record(
            NodeConditions,
            entry.where,
            node_selector=dict.fromkeys(sorted(selector), YES),
            node_affinity=_affinity(terms, sizes),
            **fields,
        )
        for name, (selector, terms) in ways.items()
    }
    some = [(count, NodeConditions(node_affinity=_affinity(terms))) for count, terms in counted]
    named = [(len(required), make_record(NodeConditions, entry.where, nodes_allowed=required))] if required else []
    return Asked(conditions, [*some, *named])


def _constraint(text: str) -> tuple[list[Terms], list[tuple[int, Terms]]]:
    """
    Return the alternatives that all nodes of a job meet together, and of how many nodes more is asked.

    ``a|b`` is of each node; ``[a|b]`` of all together; ``a*2`` and ``[a*2&b*4]`` of so many, each node counting once.
    """
    brackets, counts = _BRACKETS.fullmatch(text), list[re.Match[str] | None]()
    if not is_set(text):
        return [ANYTHING], []
    if brackets is None:
        counts = [match for match in [_COUNT.fullmatch(text)] if match]
        sets = [ANYTHING if counts else _terms(text)]
    else:
        others = [f"({part})" for part in brackets.group(1, 3) if part]
        rest = _terms("&".join(others)) if others else ANYTHING
        if "*" in brackets[2]:
            counts, sets = [_COUNT.fullmatch(one) for one in re.split(r"[&,](?![^()]*\))", brackets[2])], [rest]
        else:
            sets = [tuple(one | term for one in rest) for term in _terms(brackets[2])]
    if None in counts:
        raise JobLeftOut(_UNREAD)
    return sets, [(int(match[2]), _terms(match[1])) for match in counts if match is not None]


def _terms(text: str) -> Terms:
    """Return the labels of each alternative of a constraint on one node."""
    terms = parse_constraint(text)
    if terms is None:
        raise JobLeftOut(_UNREAD)
    return tuple(Features(f"feature:{word}" for word in term) for term in terms)


def _affinity(terms: Terms, sizes: Sequence[LabelExpression] = ()) -> tuple[tuple[LabelExpression, ...], ...]:
    if not sizes and Features() in terms:
        return ()
    return tuple(dict.fromkeys((*map(_has, sorted(term)), *sizes) for term in terms))


@cache
def _has(label: str) -> LabelExpression:
    return LabelExpression(key=label, operator="Exists")


def _expression(entry: JsonEntry, label: str, operator: Operator, value: str) -> LabelExpression:
    return make_record(LabelExpression, entry.where, key=label, operator=operator, values=(value,))


def nodes_of(asked: Mapping[str, NodeConditions], nodes: Mapping[str, SlurmNode]) -> Iterator[SlurmNode]:
    """Yield the nodes that meet one of some conditions."""
    for name, one in nodes.items():
        labels = one.node.labels
        if any(
            name not in asks.nodes_excluded
            and labels.items() >= asks.node_selector.items()
            and any(all(each.accepts(labels.get(each.key)) for each in term) for term in asks.node_affinity or ((),))
            for asks in asked.values()
        ):
            yield one


def beside(entry: JsonEntry, *, labelled: bool, owned: bool = False) -> dict[str, Any]:
    """
    Return the labels of a job by which others select it, and which jobs it keeps off its nodes.

    ``--exclusive=user``: jobs of other users; ``owned``: so does a node that a user owns. ``--exclusive=mcs``: jobs of
    another label, and of none (``ondemandselect``, the default of ``MCSParameters``). ``labelled``: Whether jobs have
    labels of their users. Raises `JobLeftOut` if the job states none.
    """
    word = exclusive_of(entry)
    own = {"user": entry.text("user_name", ""), "mcs": entry.text("mcs_label", "") if word == "mcs" else ""}
    keys = {"user"} if owned else {word} & own.keys()
    if any(not own[key] for key in keys):
        raise JobLeftOut(f"asks for --exclusive={word[:30]}, and states none")
    apart = [_expression(entry, key, "NotIn", own[key]) for key in sorted(keys)]
    return {
        "labels": {key: name for key, name in own.items() if name and (labelled or key == "mcs")},
        "relations": tuple(Relation(kind="apart", level="node", selector=(one,)) for one in apart),
    }
