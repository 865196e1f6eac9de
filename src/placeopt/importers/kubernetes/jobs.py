"""Jobs from drafts: where each may start, and which are left out because the round has no such rule."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.kubernetes.exclusive_amounts import port_name
from placeopt.importers.kubernetes.gangs import GangBuilder, JobDraft, unreadable_job
from placeopt.importers.kubernetes.inter_pod_rules import InterPodRules
from placeopt.importers.kubernetes.node_selectors import NO_NODE, NodeConditions, where
from placeopt.importers.kubernetes.nodes import NodeCapacity, NodeList
from placeopt.importers.kubernetes.options import OptionBuilder
from placeopt.importers.kubernetes.pod_list import PodList
from placeopt.importers.kubernetes.pods import Pod, unreadable_field
from placeopt.importers.kubernetes.volumes import Volumes
from placeopt.importers.kubernetes.workloads import PodTemplate
from placeopt.importers.observed_round import ObservedJob, ObservedWorker, origin_of
from placeopt.importers.priority_rule import DEFAULT_RULE, PriorityRule, flags_of
from placeopt.model import Job, JobOrigin


@dataclass
class JobBuilder:
    """Builds the jobs of the round."""

    nodes: Mapping[str, NodeCapacity]
    options: OptionBuilder
    rules: InterPodRules
    conditions: Mapping[str, NodeConditions]
    """Pod -> what it and its volumes ask of nodes."""
    notes: ImportNotes
    _known: dict[NodeConditions, NodeConditions] = field(default_factory=dict, init=False)

    def read(self, drafts: Iterable[JobDraft]) -> list[ObservedJob]:
        """Return the jobs, in the order of the drafts."""
        drafts = list(drafts)
        left: dict[str, str] = {}
        for draft in sorted((draft for draft in drafts if not draft.runs), key=lambda draft: draft.order_key):
            if (reason := self._take(draft)) is not None:
                left[draft.name] = reason
        jobs = []
        for draft in drafts:
            if draft.name in left:
                self.notes.leave_out(left[draft.name], draft.name)
                continue
            try:
                jobs.append(self._job(draft))
            except BadInput as error:
                reason = unreadable_field(draft.first.entry, error)
                if draft.runs:
                    own = dict.fromkeys(pod.node for pod in draft.pods if pod.node is not None)
                    jobs.append(unreadable_job(draft.name, tuple(own), reason, draft.first.entry.where))
                else:
                    self.notes.leave_out(reason, draft.name)
        return jobs

    def _take(self, draft: JobDraft) -> str | None:
        """Write a waiting job's nodes into its draft; return why it is left out, None if it is accepted."""
        if (key := self.options.unknown_level(draft)) is not None:
            return f"that must stay within one {key}, which is not a level (--levels names them)"
        for key, near in draft.bound:
            values = {self.nodes[node].labels.get(key) if node in self.nodes else None for node in near}
            known = tuple(value for value in values if value is not None)
            draft.conditions &= where(key, "In", *known) if len(known) == len(values) == 1 else NO_NODE
        reason = self.rules.take(draft)
        if reason is None:
            draft.conditions = self._shared(draft.conditions & self.conditions[draft.first.id])
        return reason

    def _shared(self, conditions: NodeConditions) -> NodeConditions:
        """Return the one object for equal conditions."""
        return self._known.setdefault(conditions, conditions)

    def _job(self, draft: JobDraft) -> ObservedJob:
        first, runs = draft.first, draft.runs
        conditions = self._where_else(draft) if runs else draft.conditions
        fields: dict[str, object] = {
            "id": draft.name,
            "kind": "training" if any(pod.gpus for pod in draft.pods) else "cpu",
            "user": first.namespace,
            "queue": first.queue,
            "preempts": all([pod.rules.preempts for pod in draft.pods]),  # noqa: C419 - half the time of a generator
            "arrival_ms": min([pod.created_ms for pod in draft.pods]),
            "options": self.options.option(draft),
            "node_selector": first.rules.node_selector,
            "node_affinity": conditions.node_affinity,
            "nodes_allowed": conditions.nodes_allowed,
            "nodes_excluded": conditions.nodes_excluded,
            "tolerations": first.rules.tolerations,
            "conditions_unread": conditions.unread is not None,
            "origin": _origin(draft),
        }
        job = make_record(Job, first.entry.where, **fields)
        workers = tuple(
            ObservedWorker(pod.node, () if not pod.gpus else None) for pod in draft.pods if pod.node is not None
        )
        movable, preemptible = self._flags(draft)
        return ObservedJob(
            job,
            workers,
            started_ms=max(pod.started_ms for pod in draft.pods),
            priority=first.rules.priority,
            where=first.entry.where,
            movable=movable,
            preemptible=preemptible,
        )

    def _flags(self, draft: JobDraft) -> tuple[bool, bool]:
        """
        Return whether a running job may be moved, and preempted.

        Neither, where it is a part of a gang, or rules of other pods refer to it.
        """
        if not draft.runs or not draft.whole:
            return False, False
        by_rule, marked = True, False
        for pod in draft.pods:
            if pod.id in self.rules.bound:
                return False, False
            by_rule = by_rule and self.options.rule.may_preempt(pod.rules.priority, (pod.rules.priority_class,))
            marked = marked or bool(pod.marks)
        if not marked:
            return False, by_rule
        return flags_of([pod.marks for pod in draft.pods], by_rule, draft.name, self.notes)

    def _where_else(self, draft: JobDraft) -> NodeConditions:
        """
        Return the conditions under which a running job could move; its own nodes, where those are not known.

        They are not, where the round lacks one of its rules, or rules of other pods concern it: what they ask of
        waiting jobs follows from its place.
        """
        asked = dict.fromkeys([self.conditions[pod.id] for pod in draft.pods])
        if len(asked) == 1 and not any([self._is_bound(pod) for pod in draft.pods]):  # noqa: C419 - half the time
            return self._shared(next(iter(asked)) & self.rules.repelled(draft))
        own = dict.fromkeys([pod.node for pod in draft.pods if pod.node is not None])
        return NodeConditions(nodes_allowed=tuple(own), unread="rules that are not read")

    def _is_bound(self, pod: Pod) -> bool:
        odd = pod.unsupported or pod.shares or pod.topology.required or self.conditions[pod.id].unread
        return bool(odd) or pod.id in self.rules.bound or any(port_name(port) not in pod.named for port in pod.ports)


def _origin(draft: JobDraft) -> JobOrigin:
    """Return the name of the pod or of the group, and the pods by rank."""
    first = draft.first
    pods = [(pod.id, pod.uid) for pod in draft.pods if not isinstance(pod.entry, PodTemplate)]
    if first.group is None or len(pods) == 1:
        return origin_of(first.id, first.uid, pods)
    return origin_of(first.group.id, None, pods)


def build_jobs(
    pods: PodList,
    nodes: NodeList,
    volumes: Volumes,
    counted: Container[str],
    notes: ImportNotes,
    rule: PriorityRule = DEFAULT_RULE,
) -> list[ObservedJob]:
    """Return the jobs of the listed pods; ``counted``: terms of anti-affinity that amounts state. The rest is noted."""
    conditions = {pod.id: pod.rules.conditions & pod.conditions & volumes.read(pod) for pod in pods.job_pods}
    for pod_id, reason in pods.missing.items():
        conditions[pod_id] &= NodeConditions(unread=reason)
    near = {
        pod.id: terms.affinity[0].text
        for pod in pods.waiting
        if (terms := pods.terms.get(pod.id)) and len(terms.affinity) == 1 and terms.affinity[0].meets(pod)
    }
    drafts = GangBuilder(pods.rules, near, conditions, pods.ended, notes).drafts(pods.job_pods)
    rules = InterPodRules(nodes, pods, [draft for draft in drafts if not draft.runs], counted)
    jobs = JobBuilder(nodes.by_name, OptionBuilder(nodes.levels, rule), rules, conditions, notes).read(drafts)
    if any(job.preemptible for job in jobs) and not all(pod.rules.preempts for pod in pods.waiting):
        notes.assume(
            "Pods of preemptionPolicy Never wait: a plan may stop others for them, unless priorities are strict."
        )
    if rules.doubtful:
        notes.assume("Anti-affinity by labels of namespaces that are not listed closes nodes to all of them.")
    return jobs
