"""Jobs from drafts: how each may run, on which nodes, and which are left out because the round has no such rule."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.kubernetes.gangs import Draft, Part, gang_drafts
from placeopt.importers.kubernetes.inter_pod_rules import InterPodRules
from placeopt.importers.kubernetes.listing import PodList, unreadable_job
from placeopt.importers.kubernetes.makers import KUEUE_GATES, GroupRules, Topology
from placeopt.importers.kubernetes.node_selectors import EVERY_NODE, NO_NODE, NodeConditions, where
from placeopt.importers.kubernetes.nodes import KubernetesNode
from placeopt.importers.kubernetes.objects import job_id, unreadable_field
from placeopt.importers.kubernetes.pods import Pod
from placeopt.importers.kubernetes.queues import Queues
from placeopt.importers.kubernetes.resources import PODS
from placeopt.importers.kubernetes.topologies import HOSTNAME, Levels
from placeopt.importers.kubernetes.volumes import Volumes
from placeopt.importers.kubernetes.workloads import PodTemplate
from placeopt.importers.observed_round import ObservedJob, ObservedWorker, origin_of
from placeopt.importers.priority_rule import PriorityRule, flags_of
from placeopt.model import Demand, Group, Job, JobOrigin, Option, Relation, Split, Spread
from placeopt.model import NodeConditions as GroupConditions
from placeopt.model.base import MAX_VALUE


@dataclass
class JobReader:
    """
    Makes the jobs of the round.

    ``gangs``: Rules of the listed objects. ``stated``: Resources of which nodes state how much they have. ``counted``:
    Anti-affinity that amounts state. ``every_label``: Whether jobs have labels at which no relation here looks.
    """

    nodes: Mapping[str, KubernetesNode]
    levels: Levels
    gangs: Mapping[str, GroupRules]
    queues: Queues
    stated: Container[str]
    counted: Container[Relation]
    every_label: bool
    resource: str
    rule: PriorityRule
    notes: ImportNotes
    _conditions: dict[str, NodeConditions] = field(default_factory=dict, init=False)
    """Pod -> what it and its volumes ask of nodes."""
    _known: dict[object, Any] = field(default_factory=dict, init=False)
    """Conditions and options: equal ones are one object."""

    def read(self, pods: PodList, volumes: Volumes) -> list[ObservedJob]:
        """Return the jobs of the listed pods; the rest is noted."""
        for pod in pods.work:
            self._conditions[pod.id] = pod.conditions & volumes.read(pod) & self._missing(pod)
        rules = InterPodRules(self.levels, pods, self.counted, self.every_label)
        drafts = list(self._accepted(gang_drafts(pods.work, self.gangs, pods.ended, self.notes), rules))
        jobs = [job for draft in drafts for job in self._readable_job(draft, rules)]
        if any(job.preemptible for job in jobs) and not all(pod.preempts for pod in pods.waiting):
            self.notes.assume(
                "Pods of preemptionPolicy Never wait: a plan may stop others for them, unless priorities are strict."
            )
        if any(rules.is_doubtful(draft) for draft in drafts):
            self.notes.assume("Running pods are apart from all namespaces that are not listed and whose labels decide.")
        return jobs

    def _missing(self, pod: Pod) -> NodeConditions:
        asked = [*pod.exact, *([self.resource] if pod.gpus else [])] if pod.node is None else []
        missing = [name for name in asked if name not in self.stated and name not in ("cpu", "memory", PODS)]
        return NodeConditions(unread=f"asking for {', '.join(missing)}, which no node states" if missing else None)

    def _accepted(self, drafts: Sequence[Draft], rules: InterPodRules) -> Iterator[Draft]:
        """Yield drafts under names of their own; those with a rule that the round lacks are noted."""
        names: set[str] = set()
        for draft in drafts:
            reason = None if draft.runs else self._unread(draft) or rules.unread(draft)
            if reason is not None:
                self.notes.leave_out(reason, draft.name)
                continue
            number, name = 1, (known := job_id(draft.name))
            while name in names:
                name, number = f"{known}+{number}", number + 1
            names.add(name)
            yield draft._replace(name=name)

    def _unread(self, draft: Draft) -> str | None:
        """Return why pods that wait are left out: the first reason of any of them."""
        for pod in draft.pods:
            if set(pod.gates) - KUEUE_GATES:
                return "behind a scheduling gate"
            if pod.shares:
                return f"asking for a part of a GPU, or devices that are not read: {', '.join(pod.shares)}"
            if (reason := pod.unsupported or self._conditions[pod.id].unread) is not None:
                return reason
        leaves = [{self._rules(pod) for pod in leaf.pods} for leaf in draft.tree.leaves()]
        apart = len(leaves) > 1 and len(set.union(*leaves)) > 1
        if any(len(rules) > 1 for rules in leaves) or len({pod.ports for pod in draft.pods}) > 1:
            return "a gang of alike pods that wait and have different rules about nodes, or different ports"
        if apart and any(self._conditions[pod.id].nodes_allowed is not None for pod in draft.pods):
            return "a gang of unlike pods that wait, of which some may use listed nodes alone"
        if (reason := draft.left_out or self.queues.unread(draft.first, self.gangs)) is not None:
            return reason
        for part in draft.tree.groups():
            for key in part.topology.hard_levels:
                if key != HOSTNAME and key not in self.levels.names:
                    return f"that must stay within one {key}, which is not a level (--levels names them)"
        return None

    def _readable_job(self, draft: Draft, rules: InterPodRules) -> Iterator[ObservedJob]:
        """Yield the job of a draft, none if it waits and cannot be read."""
        try:
            yield self._job(draft, rules)
        except BadInput as error:
            reason = unreadable_field(draft.first.entry, error)
            if draft.runs:
                nodes = dict.fromkeys(pod.node for pod in draft.pods if pod.node is not None)
                yield unreadable_job(draft.name, tuple(nodes), reason, draft.first.entry.where)
            else:
                self.notes.leave_out(reason, draft.name)

    def _job(self, draft: Draft, rules: InterPodRules) -> ObservedJob:
        first, pods, differ = draft.first, draft.pods, self._differ(draft)
        conditions = self._where_else(draft, rules) if draft.runs else self._where(draft)
        conditions = self._known.setdefault(conditions, conditions)
        job = make_record(
            Job,
            first.entry.where,
            id=draft.name,
            kind="training" if any(pod.gpus for pod in pods) else "cpu",
            user=first.namespace,
            queue=self.queues.of(first, self.gangs),
            preempts=all(pod.preempts for pod in pods),
            arrival_ms=min(pod.created_ms for pod in pods),
            options=self._options(draft),
            node_selector={} if differ else first.node_selector,
            node_affinity=conditions.node_affinity,
            nodes_allowed=conditions.nodes_allowed,
            nodes_excluded=conditions.nodes_excluded,
            tolerations=() if differ else first.tolerations,
            labels=rules.labels_of(first),
            relations=rules.relations_of(first),
            conditions_unread=conditions.unread is not None,
            origin=_origin(draft),
        )
        workers = tuple(
            ObservedWorker(
                pod.node,
                tuple(part.gpu for part in pod.parts) or (None if pod.gpus else ()),
                self._starts(pod),
            )
            for pod in pods
            if pod.node is not None
        )
        movable, preemptible = self._flags(draft)
        started = max(pod.started_ms for pod in pods)
        return ObservedJob(job, workers, started, None, first.priority, first.entry.where, None, movable, preemptible)

    def _starts(self, pod: Pod) -> tuple[int, ...]:
        """Return the first slots of a running pod's GPUs, where these have profiles: 0 of whole ones."""
        if pod.node is None or pod.node not in self.nodes or not self.nodes[pod.node].profiles:
            return ()
        return tuple(part.start for part in pod.parts) or (0,) * pod.gpus

    def _rules(self, pod: Pod) -> tuple[str, NodeConditions]:
        return pod.node_rules, self._conditions[pod.id]

    def _differ(self, draft: Draft) -> bool:
        """Return whether the groups of a waiting job have conditions of their own, as its pods have different ones."""
        return not draft.runs and len({self._rules(pod) for pod in draft.pods}) > 1

    def _where(self, draft: Draft) -> NodeConditions:
        """Return the conditions of a waiting job on its nodes, beside those of its groups."""
        conditions = EVERY_NODE if self._differ(draft) else self._conditions[draft.first.id]
        for key, near in draft.bound:
            values = {self.nodes[node].labels.get(key) if node in self.nodes else None for node in near}
            value = values.pop() if len(values) == 1 else None
            conditions &= NO_NODE if value is None else where(key, "In", value)
        return conditions

    def _where_else(self, draft: Draft, rules: InterPodRules) -> NodeConditions:
        """
        Return the conditions under which a running job could move; its own nodes, where those are not known.

        They are not, where the round lacks one of its rules.
        """
        asked = {self._conditions[pod.id] for pod in draft.pods}
        if len(asked) == 1 and not any(map(self._is_odd, draft.pods)) and rules.unread(draft) is None:
            return asked.pop()
        own = dict.fromkeys(pod.node for pod in draft.pods if pod.node is not None)
        return NodeConditions(nodes_allowed=tuple(own), unread="rules that are not read")

    def _is_odd(self, pod: Pod) -> bool:
        return bool(pod.unsupported or pod.shares or pod.topology.required or self._conditions[pod.id].unread)

    def _flags(self, draft: Draft) -> tuple[bool, bool]:
        """
        Return whether a running job may be moved, and preempted.

        Neither, where it is a part of a gang.
        """
        if not draft.runs or not draft.whole:
            return False, False
        by_rule = all(self.rule.may_preempt(pod.priority, (pod.priority_class,)) for pod in draft.pods)
        return flags_of([pod.marks for pod in draft.pods], by_rule, draft.name, self.notes)

    def _options(self, draft: Draft) -> tuple[Option]:
        """Return the way to run a job; all of its levels are known."""
        first, tree = draft.first, draft.tree
        gpu_value = self.rule.gpu_value(first.priority, [first.priority_class])
        if tree.parts:
            return (self._option(draft, gpu_value),)
        key = (first.kind, len(tree.pods), tree.pods_min, tree.topology, gpu_value, self._apart_by_port(draft))
        if key not in self._known:
            self._known[key] = (self._option(draft, gpu_value),)
        found: tuple[Option] = self._known[key]
        return found

    @staticmethod
    def _apart_by_port(draft: Draft) -> bool:
        return not draft.runs and len(draft.pods) > 1 and bool(draft.first.ports)

    def _option(self, draft: Draft, gpu_value: int) -> Option:
        fields = self._group(draft.tree, gpu_value, optional=False, differ=self._differ(draft))
        if self._apart_by_port(draft):
            fields["workers_per_node_max"] = 1
        value = min(MAX_VALUE, sum(self.rule.value(pod.gpus, gpu_value) for pod in draft.pods))
        return make_record(Option, draft.first.entry.where, value=value, **fields)

    def _group(self, part: Part, gpu_value: int, *, optional: bool, differ: bool) -> dict[str, Any]:
        """
        Return the fields of a group.

        ``optional``: all of its pods may be missing. ``differ``: what leaves ask of nodes is theirs, not the job's.
        """
        fields = self._domains(part.topology)
        fields["prefer"] = self._preferred(part) if len(list(part.members())) > 1 else ()
        if part.parts:
            groups = []
            for one in part.parts:
                inner = self._group(one, gpu_value, optional=optional or one.optional, differ=differ)
                at = next(one.leaves()).pods[0].entry.where
                groups.append(make_record(Group, at, id=one.name, optional=one.optional, **inner))
            return {**fields, "groups": tuple(groups)}
        first, workers = part.pods[0], len(part.pods)
        named = {name: amount for name, amount in first.amounts.items() if name not in ("cpu", "memory")}
        demand = make_record(
            Demand,
            first.entry.where,
            gpus=first.gpus,
            **({} if first.profile is None else dict(zip(("gpu_profile", "gpu_milli"), first.profile, strict=True))),
            cpu_millicores=first.amounts.get("cpu", 0),
            memory_mib=first.amounts.get("memory", 0),
            resources=named,
        )
        worth = min(self.rule.value(first.gpus, gpu_value), MAX_VALUE // workers)
        return {
            **fields,
            "workers": workers,
            "workers_min": max(1, part.pods_min) if part.pods_min < workers else None,
            "demand": demand,
            "conditions": self._of_leaf(first) if differ else None,
            "value_per_worker": worth if optional or part.pods_min < workers else 0,
        }

    def _of_leaf(self, pod: Pod) -> GroupConditions:
        own = self._conditions[pod.id]
        return make_record(
            GroupConditions,
            pod.entry.where,
            node_selector=pod.node_selector,
            node_affinity=own.node_affinity,
            nodes_excluded=own.nodes_excluded,
            tolerations=pod.tolerations,
        )

    def _preferred(self, part: Part) -> tuple[str, ...]:
        """Return the levels whose one domain should hold a group: the preferred one, then those above it."""
        required, preferred = part.topology.required, part.topology.preferred
        upwards = [HOSTNAME, *reversed(self.levels.names)]
        if preferred is None or required == HOSTNAME:
            return ()
        if preferred not in upwards:
            self.notes.assume(f"A preferred level that no node has is not read: {preferred}.")
            return ()
        keys = upwards[upwards.index(preferred) : upwards.index(required) if required in upwards else None]
        return tuple("node" if key == HOSTNAME else self.levels.names[key] for key in keys)

    def _domains(self, topology: Topology) -> dict[str, Any]:
        """Return what a group of workers says of domains."""
        level_of = {HOSTNAME: "node", **self.levels.names}
        together = None if topology.required is None else level_of[topology.required]
        return {
            "single_node": together == "node",
            "splits": () if together in (None, "node") else (Split(level=together, domains=1),),
            "spread": tuple(Spread(level=level_of[level], segment=size) for level, size in topology.slices),
        }


def _origin(draft: Draft) -> JobOrigin:
    """Return the name of the pod or of the group, and the pods by rank."""
    first = draft.first
    pods = [(pod.id, pod.uid) for pod in draft.pods if not isinstance(pod.entry, PodTemplate)]
    if first.group is None or len(pods) == 1:
        return origin_of(first.id, first.uid, pods)
    return origin_of(first.group.id, None, pods)
