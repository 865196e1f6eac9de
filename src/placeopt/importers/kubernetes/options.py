"""The way to run a job, as a record: one group of alike workers, or a tree of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placeopt.documents.faults import make_record
from placeopt.importers.kubernetes.gang_groups import Part, amounts_of
from placeopt.importers.kubernetes.gangs import JobDraft
from placeopt.importers.kubernetes.nodes import HOSTNAME
from placeopt.importers.kubernetes.pod_groups import Topology
from placeopt.importers.kubernetes.pods import Pod
from placeopt.importers.priority_rule import PriorityRule
from placeopt.model import Demand, Group, Option, Split, Spread
from placeopt.model.base import MAX_VALUE


@dataclass
class OptionBuilder:
    """Makes the options of jobs; equal ones are one object. ``levels``: Node label that defines domains -> level."""

    levels: Mapping[str, str]
    rule: PriorityRule
    _known: dict[tuple[object, ...], tuple[Option]] = field(default_factory=dict, init=False)

    def unknown_level(self, draft: JobDraft) -> str | None:
        """Return a label that a rule of a job names and that is no level."""
        named = [level for part in draft.groups() for level in (part.topology.required, *dict(part.topology.slices))]
        return next((key for key in named if key not in (None, HOSTNAME) and key not in self.levels), None)

    def option(self, draft: JobDraft) -> tuple[Option]:
        """Return the way to run a job; all of its levels are known."""
        first, least = draft.first, len(draft.pods) if draft.runs else draft.pods_min
        gpu_value = self.rule.gpu_value(first.rules.priority, [first.rules.priority_class])
        rules = self._rules(draft.topology)
        rules["single_node"] = draft.single_node or rules["single_node"]
        rules["splits"] = tuple(dict.fromkeys((*rules["splits"], *draft.splits)))
        rules["workers_per_node_max"] = draft.workers_per_node_max
        if draft.parts:
            groups = tuple(self._group(part, gpu_value, part.optional) for part in draft.parts)
            value = sum(self.rule.value(pod.gpus, gpu_value) for pod in draft.pods)
            return (make_record(Option, first.entry.where, groups=groups, value=min(value, MAX_VALUE), **rules),)
        key = (*amounts_of(first), frozenset(first.named.items()), len(draft.pods), least, gpu_value)
        key = (*key, *rules.values())
        if key not in self._known:
            leaf = self._leaf(draft.pods, least, gpu_value)
            value = min(self.rule.value(first.gpus, gpu_value) * len(draft.pods), MAX_VALUE)
            self._known[key] = (make_record(Option, first.entry.where, value=value, **leaf, **rules),)
        return self._known[key]

    def _rules(self, topology: Topology) -> dict[str, Any]:
        """Return what a group of workers says of domains."""
        level_of = {HOSTNAME: "node", **self.levels}
        together = None if topology.required is None else level_of[topology.required]
        return {
            "single_node": together == "node",
            "splits": () if together in (None, "node") else (Split(level=together, domains=1),),
            "spread": tuple(Spread(level=level_of[level], segment=size) for level, size in topology.slices),
        }

    def _leaf(self, pods: Sequence[Pod], least: int, gpu_value: int, *, optional: bool = False) -> dict[str, Any]:
        """Return what a group of alike workers says of them; ``optional``: all may be missing."""
        gpus, cpu, memory = amounts_of(pods[0])
        amounts = {"gpus": gpus, "cpu_millicores": cpu, "memory_mib": memory, "resources": pods[0].named}
        worth = min(self.rule.value(gpus, gpu_value), MAX_VALUE // len(pods))
        return {
            "workers": len(pods),
            "workers_min": max(1, least) if least < len(pods) else None,
            "demand": make_record(Demand, pods[0].entry.where, **amounts),
            "value_per_worker": worth if optional or least < len(pods) else 0,
        }

    def _group(self, part: Part, gpu_value: int, optional: bool) -> Group:
        """Return a part of a gang as a group; ``optional``: all of its pods may be missing."""
        where = next(part.leaves()).pods[0].entry.where
        fields = self._rules(part.topology) | {"id": part.name, "optional": part.optional}
        if part.parts:
            fields["groups"] = tuple(self._group(one, gpu_value, optional or one.optional) for one in part.parts)
            return make_record(Group, where, **fields)
        leaf = self._leaf(part.pods, part.pods_min, gpu_value, optional=optional)
        return make_record(Group, where, **leaf, **fields)
