"""Jobs from drafts: how each may run, on which nodes, and which are left out because the round has no such rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.kubernetes.gangs import Draft, PodGroup, gang_drafts
from placeopt.importers.kubernetes.listing import Listing, PodList, PodTemplate
from placeopt.importers.kubernetes.makers import KUEUE_GATES, MAX_PODS, Topology
from placeopt.importers.kubernetes.node_conditions import NO_NODE, Volumes, asked_of_nodes, both, label_selector, where
from placeopt.importers.kubernetes.nodes import HOSTNAME, Levels
from placeopt.importers.kubernetes.objects import job_id, unreadable_field
from placeopt.importers.kubernetes.pod_relations import InterPodRules
from placeopt.importers.kubernetes.pods import Pod
from placeopt.importers.kubernetes.resources import PODS
from placeopt.importers.observed_round import ObservedJob, ObservedWorker, origin_of, unreadable_job
from placeopt.importers.priority_rule import flags_of
from placeopt.importers.stated_marks import UNREAD_MARKS, with_stated
from placeopt.model import Demand, Group, Job, JobOrigin, NodeConditions, Option, Split, Spread
from placeopt.model.base import MAX_VALUE
from placeopt.model.conditions import ANY_NODE

SPREAD_UNREAD = "with a topology spread constraint (DoNotSchedule) that counts other pods, or other nodes, than its own"
SPREAD_DEFAULTS = {
    "minDomains": 1,
    "matchLabelKeys": None,
    "nodeAffinityPolicy": "Honor",
    "nodeTaintsPolicy": "Ignore",
}
SPREAD = ("topologyKey", "maxSkew", "labelSelector", *SPREAD_DEFAULTS)


class JobReader:
    """Makes the jobs of the round of listed pods; their amounts become those that the cluster counts."""

    def __init__(self, listing: Listing, pods: PodList, levels: Levels, rules: InterPodRules) -> None:
        self._listing, self._pods, self._levels, self._rules = listing, pods, levels, rules
        self._notes, self._rule = listing.notes, listing.rule
        volumes = Volumes(listing.listed, pods.readable, listing.notes)
        self._conditions: dict[str, NodeConditions] = {}
        """Pod -> what it and its volumes ask of nodes; of those that cannot be said, the reason is in ``_unread``."""
        self._unread: dict[str, str] = {}
        for pod in pods.work:
            asked = both(both(pod.conditions, volumes.read(pod)), self._missing(pod))
            self._conditions[pod.id] = pod.conditions if isinstance(asked, str) else asked
            if isinstance(asked, str):
                self._unread[pod.id] = asked
        self._level_of = {HOSTNAME: "node", **levels.names}
        self._known: dict[object, Any] = {}
        """Options: equal ones are one object."""
        counted = {"cpu", "memory", *(listing.stated if rules.known is None else rules.known)}
        for pod in pods.work:
            amounts = {name: amount for name, amount in pod.amounts.items() if name in counted}
            pod.amounts = amounts | rules.taken.get(pod.id, {})

    def read(self) -> list[ObservedJob]:
        """Return the jobs; the rest is noted."""
        drafts = list(self._accepted(gang_drafts(self._pods.work, self._listing.gangs, self._pods.ended, self._notes)))
        jobs = [job for draft in drafts for job in self._readable_job(draft)]
        if any(job.preemptible for job in jobs) and not all(pod.preempts for pod in self._pods.waiting):
            self._notes.assume(
                "Pods of preemptionPolicy Never wait: a plan may stop others for them, unless priorities are strict."
            )
        if any(self._rules.is_doubtful(draft.first) for draft in drafts):
            self._notes.assume(
                "Running pods are apart from all namespaces that are not listed and whose labels decide."
            )
        return jobs

    def _missing(self, pod: Pod) -> NodeConditions | str:
        asked = [*pod.exact, *([self._listing.resource] if pod.gpus else [])] if pod.node is None else []
        missing = [name for name in asked if name not in {*self._listing.stated, "cpu", "memory", PODS}]
        return f"asking for {', '.join(missing)}, which no node states" if missing else ANY_NODE

    def _accepted(self, drafts: list[Draft]) -> Iterator[Draft]:
        """Yield drafts under names of their own; those with a rule that the round lacks are noted."""
        names: set[str] = set()
        for draft in drafts:
            if not draft.runs and (reason := self._not_eligible(draft)) is not None:
                self._notes.not_eligible(reason, draft.name)
                continue
            if not draft.runs and (reason := self._left_out(draft) or self._rules.unread(draft.pods)) is not None:
                self._notes.leave_out(reason, draft.name)
                continue
            number, name = 1, (known := job_id(draft.name))
            while name in names:
                name, number = f"{known}+{number}", number + 1
            names.add(name)
            yield draft._replace(name=name)

    def _not_eligible(self, draft: Draft) -> str | None:
        """Return why no free capacity starts pods that wait."""
        if any(pod.gates - KUEUE_GATES for pod in draft.pods):
            return "behind a scheduling gate"
        stopped = self._listing.queues.is_stopped(draft.first, self._listing.gangs)
        return "of a queue that is stopped" if stopped else draft.waits_for

    def _left_out(self, draft: Draft) -> str | None:
        """Return why pods that wait are left out: the first reason of any of them."""
        for pod in draft.pods:
            if pod.shares:
                return f"asking for a part of a GPU, or devices that are not read: {', '.join(pod.shares)}"
            if (reason := pod.unsupported or self._unread.get(pod.id)) is not None:
                return reason
        if any(self._differ(leaf.pods) for leaf in draft.tree.leaves()) or len({pod.ports for pod in draft.pods}) > 1:
            return "a gang of alike pods that wait and have different rules about nodes, or different ports"
        if (reason := draft.left_out or self._listing.queues.unread(draft.first, self._listing.gangs)) is not None:
            return reason
        for part in draft.tree.groups():
            for key in part.topology.hard_levels:
                if key not in self._level_of:
                    return f"that must stay within one {key}, which is not a level (--levels names them)"
        try:
            any_spread = any(pod.spread for pod in draft.pods)
            return SPREAD_UNREAD if any_spread and not self._is_exact_spread(draft) else None
        except BadInput as error:
            return unreadable_field(draft.first.entry, error)

    def _is_exact_spread(self, draft: Draft) -> bool:
        """
        Return whether the topology spread constraint of a gang that waits is the skew of its group.

        Kubernetes counts pods as they come, and some order of a gang's pods keeps the skew that all of them keep; so it
        is where only they count, in domains of a level, over all nodes that their own rules about labels choose.
        """
        first = draft.first
        if len({repr([one.raws(SPREAD) for one in pod.spread]) for pod in draft.pods}) > 1 or len(first.spread) > 1:
            return False
        constraint, spec = first.spread[0], first.entry.entry("spec")
        stated = constraint.raws(SPREAD_DEFAULTS)
        plain = all(value in (None, [], usual) for value, usual in zip(stated, SPREAD_DEFAULTS.values(), strict=True))
        meets = label_selector(constraint.entry("labelSelector"))
        counted = {pod.id for pod in self._pods.readable if pod.namespace == first.namespace and meets(pod.labels)}
        return (
            plain
            and "labelSelector" in constraint
            and counted == {pod.id for pod in draft.pods}
            and not self._differ(draft.pods)
            and self._conditions[first.id] == asked_of_nodes(spec)
            and not (draft.bound or self._pods.unreadable or self._rules.known is not None)
            and self._levels.are_values(constraint.text("topologyKey"))
            and constraint.integer("maxSkew", 1, MAX_PODS) > 0
        )

    def _readable_job(self, draft: Draft) -> Iterator[ObservedJob]:
        """Yield the job of a draft, none if it waits and cannot be read."""
        entry = draft.first.entry
        try:
            yield self._job(draft)
        except BadInput as error:
            if draft.runs:
                nodes = dict.fromkeys(pod.node for pod in draft.pods if pod.node is not None)
                yield unreadable_job(draft.name, tuple(nodes), unreadable_field(entry, error), entry.where)
            else:
                self._notes.leave_out(unreadable_field(entry, error), draft.name)

    def _job(self, draft: Draft) -> ObservedJob:
        first, pods = draft.first, draft.pods
        differ = not draft.runs and self._differ(pods)
        """Whether groups have conditions of their own, as their pods have different ones."""
        unread = draft.runs and self._is_odd(draft)
        job = make_record(
            Job,
            first.entry.where,
            id=draft.name,
            kind="training" if any(pod.gpus for pod in pods) else "cpu",
            user=first.namespace,
            queue=self._listing.queues.of(first, self._listing.gangs),
            preempts=all(pod.preempts for pod in pods),
            arrival_ms=min(pod.created_ms for pod in pods),
            options=self._options(draft, differ=differ),
            conditions=self._where(draft, differ=differ, unread=unread),
            labels=self._rules.labels_of(first),
            relations=first.relations,
            conditions_unread=unread,
            origin=_origin(draft),
        )
        job = self._as_stated(job, draft)
        movable = preemptible = False
        if draft.runs and draft.whole:  # neither, where it is a part of a gang
            by_rule = all(self._rule.may_preempt(pod.priority, (pod.priority_class,)) for pod in pods)
            movable, preemptible = flags_of([pod.marks for pod in pods], by_rule, draft.name, self._notes)
        workers = tuple(self._worker(pod, pod.node) for pod in pods if pod.node is not None)
        started = max(pod.started_ms for pod in pods)
        return ObservedJob(job, workers, started, None, first.priority, first.entry.where, None, movable, preemptible)

    def _as_stated(self, job: Job, draft: Draft) -> Job:
        """Return a job as its owner's marks state it; one that runs keeps what it holds where they cannot be read."""
        try:
            return with_stated(job, [pod.marks for pod in draft.pods], draft.first.entry.where)
        except BadInput:
            if not draft.runs:
                raise
            self._notes.keep(UNREAD_MARKS, draft.name)
            return job

    def _worker(self, pod: Pod, name: str) -> ObservedWorker:
        """Return a running pod; its GPUs begin at their first slots, where these have profiles: whole ones at 0."""
        gpus, node = tuple(part.gpu for part in pod.parts), self._listing.nodes.get(name)
        starts = tuple(part.start for part in pod.parts) or (0,) * pod.gpus
        return ObservedWorker(
            name, gpus or (None if pod.gpus else ()), starts if node is not None and node.profiles else ()
        )

    def _differ(self, pods: Sequence[Pod]) -> bool:
        """Return whether pods ask different things of nodes."""
        first, *others = (self._conditions[pod.id] for pod in pods)
        return any(one is not first and one != first for one in others)

    def _is_odd(self, draft: Draft) -> bool:
        """Return whether a job that runs has rules that the round lacks: it stays, and may run on its own nodes."""
        rules = (pod.unsupported or pod.spread or pod.shares or pod.topology.required for pod in draft.pods)
        unread = any(rules) or self._differ(draft.pods) or any(pod.id in self._unread for pod in draft.pods)
        return unread or self._rules.unread(draft.pods) is not None

    def _where(self, draft: Draft, *, differ: bool, unread: bool) -> NodeConditions:
        """Return the conditions of a job on its nodes, beside those of its groups; ``unread``: it stays on its own."""
        if unread:
            own = tuple(dict.fromkeys(pod.node for pod in draft.pods))
            return make_record(NodeConditions, draft.first.entry.where, nodes_allowed=own)
        conditions = ANY_NODE if differ else self._conditions[draft.first.id]
        for key, near in draft.bound:
            nodes = [self._listing.nodes.get(name) for name in near]
            values = {None if node is None else node.labels.get(key) for node in nodes}
            value = values.pop() if len(values) == 1 else None
            conditions &= NO_NODE if value is None else where(key, "In", value)
        return conditions

    def _options(self, draft: Draft, *, differ: bool) -> tuple[Option]:
        """Return the way to run a job; all of its levels are known."""
        first, tree = draft.first, draft.tree
        gpu_value = self._rule.gpu_value(first.priority, [first.priority_class])
        alone = not draft.runs and len(draft.pods) > 1 and bool(first.ports)
        skews = [] if draft.runs else [(one.text("topologyKey"), one.raw("maxSkew")) for one in first.spread]
        key = (first.kind, len(tree.pods), tree.pods_min, tree.topology, gpu_value, alone, *skews)
        if tree.parts or key not in self._known:
            fields = self._group(tree, gpu_value, optional=False, differ=differ)
            fields["spread"] += tuple(Spread(level=self._level_of[level], skew_max=skew) for level, skew in skews)
            fields["workers_per_node_max"] = 1 if alone else None
            fields["value"] = min(MAX_VALUE, sum(self._rule.value(pod.gpus, gpu_value) for pod in draft.pods))
            option = make_record(Option, first.entry.where, **fields)
            if tree.parts:
                return (option,)
            self._known[key] = (option,)
        found: tuple[Option] = self._known[key]
        return found

    def _group(self, part: PodGroup, gpu_value: int, *, optional: bool, differ: bool) -> dict[str, Any]:
        """
        Return the fields of a group.

        ``optional``: all of its pods may be missing. ``differ``: what leaves ask of nodes is theirs, not the job's.
        """
        together = self._level_of.get(part.topology.required or "")
        fields = {
            "single_node": together == "node",
            "splits": () if together in (None, "node") else (Split(level=together, domains=1),),
            "spread": tuple(Spread(level=self._level_of[level], segment=size) for level, size in part.topology.slices),
            "prefer": self._preferred(part.topology) if len(part.members()) > 1 else (),
        }
        if part.parts:
            groups = []
            for one in part.parts:
                inner = self._group(one, gpu_value, optional=optional or one.optional, differ=differ)
                at = one.members()[0].entry.where
                groups.append(make_record(Group, at, id=one.name, optional=one.optional, **inner))
            return {**fields, "groups": tuple(groups)}
        first, workers, at = part.pods[0], len(part.pods), part.pods[0].entry.where
        named = dict(first.amounts)
        cpu, memory = (named.pop(name, 0) for name in ("cpu", "memory"))
        demand = {"gpus": first.gpus, "cpu_millicores": cpu, "memory_mib": memory, "resources": named}
        if first.profile is not None:
            demand["gpu_profile"], demand["gpu_milli"] = first.profile
        worth = min(self._rule.value(first.gpus, gpu_value), MAX_VALUE // workers)
        return {
            **fields,
            "workers": workers,
            "workers_min": max(1, part.pods_min) if part.pods_min < workers else None,
            "demand": make_record(Demand, at, **demand),
            "conditions": self._conditions[first.id] if differ else ANY_NODE,
            "value_per_worker": worth if optional or part.pods_min < workers else 0,
        }

    def _preferred(self, topology: Topology) -> tuple[str, ...]:
        """Return the levels whose one domain should hold a group: the preferred one, then those above it."""
        required, preferred = topology.required, topology.preferred
        upwards = [HOSTNAME, *reversed(self._levels.names)]
        if preferred is None or required == HOSTNAME:
            return ()
        if preferred not in upwards:
            self._notes.assume(f"A preferred level that no node has is not read: {preferred}.")
            return ()
        keys = upwards[upwards.index(preferred) : upwards.index(required) if required in upwards else None]
        return tuple(self._level_of[key] for key in keys)


def _origin(draft: Draft) -> JobOrigin:
    """Return the name of the pod or of the group, and the pods by rank."""
    first = draft.first
    pods = [(pod.id, pod.uid) for pod in draft.pods if not isinstance(pod.entry, PodTemplate)]
    if first.group is None or len(pods) == 1:
        return origin_of(first.entry.where, first.id, first.uid, pods)
    return origin_of(first.entry.where, first.group.id, None, pods)
