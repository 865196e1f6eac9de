"""Filter, prioritize, preempt and bind of kube-scheduler, answered by an engine with a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from placeopt.errors import BadInput, InternalFault, PlaceoptError, Unsupported
from placeopt.importers.kubernetes.objects import job_id
from placeopt.importers.kubernetes.pods import Pod
from placeopt.importers.kubernetes.snapshot import GPU
from placeopt.live_cluster.engine import Engine
from placeopt.live_cluster.ranking import BARRIER_WORDS, Ranking
from placeopt.service.extender.answers import BEST, filter_result, scores_of
from placeopt.service.extender.arguments import BindingArgs, ExtenderArgs
from placeopt.service.extender.decisions import Decision
from placeopt.service.extender.pod_jobs import PodJobs
from placeopt.service.extender.preemption import nodes_with_room, read_victims
from placeopt.service.extender.reservations import Reservations
from placeopt.service.refused import Refused

BIND_WITHIN_S = 60.0
"""How long the room of a decision is held without a bind; kube-scheduler binds within seconds of its filter call."""
Binder = Callable[[BindingArgs], None]
"""
Binds a pod at the API server; a pod with this UID that is bound to this node is not an error. Raises `PlaceoptError`
with the reason if it is refused, so that the pod is not bound; after any other exception it may be bound or not.
"""


class Extender(Reservations):
    """
    Answers the calls of an extender.

    A pod alone is sent to every node with room; its room is taken at bind. The pods of a gang are decided together, at
    the first call for one of them, and their room is held until they are bound, or for ``bind_within_s``.

    Parameters
    ----------
    engine
        With a cluster; its nodes have the names that Kubernetes gives them.
    resource
        The extended resource that counts GPUs.
    binder
        Creates the Binding, which is the duty of an extender with a ``bindVerb``; None: bind is refused.
    bind_within_s
        Seconds for which the room of a gang is held without a bind.
    clock
        Returns seconds that never go back.

    Notes
    -----
    Thread-safe as long as nothing else calls the engine meanwhile. Bodies and answers are those of
    ``k8s.io/kube-scheduler/extender/v1``, as ``json`` reads and writes them.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        resource: str = GPU,
        binder: Binder | None = None,
        bind_within_s: float = BIND_WITHIN_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(engine, resource, bind_within_s, clock)
        self._binder = binder
        self._under_way: set[str] = set()
        """UIDs of pods whose Binding is being created."""

    def filter(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """
        Return an ``ExtenderFilterResult``: the nodes for a pod, and the first reason of every other node.

        ``FailedAndUnresolvableNodes`` has nodes that stay closed whatever is preempted. A pod that cannot be read, or
        whose gang is not known in whole, is an ``Error``, which makes kube-scheduler try again later.
        """
        args = ExtenderArgs.read(body)
        with self._lock:
            jobs = self._refresh()
            try:
                pod = jobs.read(args.pod)
                good, failed = self._filter(jobs, pod, args)
            except (BadInput, Unsupported) as error:
                return filter_result(args, (), {}, {}, str(error))
        closed = set(BARRIER_WORDS.values()) | {_UNKNOWN}
        lasting = {node: why for node, why in failed.items() if why in closed}
        passing = {node: why for node, why in failed.items() if why not in closed}
        return filter_result(args, good, passing, lasting, "")

    def prioritize(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return a ``HostPriorityList``: 10 for the best node, 0 for nodes without room."""
        args = ExtenderArgs.read(body)
        scores = dict.fromkeys(args.nodes, 0)
        with self._lock:
            jobs = self._refresh()
            try:
                pod = jobs.read(args.pod)
                decision = self._decision(pod)
                if decision is not None:
                    node = self._node_of(decision, pod, scores)
                    scores.update({node: BEST} if node in scores else {})
                elif pod.group is None:
                    scores.update(scores_of(self._ranking(self._single(jobs, pod, args.pod), args.nodes)))
            except (BadInput, Unsupported):
                pass  # no opinion; filter states why
        return [{"Host": node, "Score": score} for node, score in scores.items()]

    def preempt(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """
        Return an ``ExtenderPreemptionResult``: the nodes where the pod fits once their victims are gone.

        None for a pod of a gang: stopping jobs for one pod does not make room for the others.
        """
        pod_object, victims = read_victims(body)
        with self._lock:
            jobs = self._refresh()
            try:
                pod = jobs.read(pod_object)
                if pod.group is not None or self._decision(pod) is not None:
                    return {"NodeNameToMetaVictims": {}}
                job = jobs.single(pod_object)
            except (BadInput, Unsupported):
                return {"NodeNameToMetaVictims": {}}
            there = {node: uids for node, uids in victims.items() if node in self._nodes}
            held = {node: {self._job_of[uid] for uid in v.uids if uid in self._job_of} for node, v in there.items()}
            good = nodes_with_room(self._engine.snapshot, job, held)
        return {"NodeNameToMetaVictims": {node: victims[node].meta() for node in there if node in good}}

    def bind(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """
        Bind a pod and return an ``ExtenderBindingResult``; the same call again does nothing.

        Raises
        ------
        Refused
            With 409 if the pod is bound, or was decided, for another node; with 422 if no call named the pod before.
        """
        args = BindingArgs.read(body)
        answer = self.begin_bind(args)
        return self.end_bind(args, *self.create_binding(args)) if answer is None else answer

    def begin_bind(self, args: BindingArgs) -> dict[str, Any] | None:
        """Take the room of a pod for good; return the answer, or None if the Binding is to be created now."""
        with self._lock:
            self._refresh()
            if self._binder is None:
                return {"Error": "placeopt binds no pods here: leave bindVerb out, and kube-scheduler binds"}
            name = self._job_of.get(args.uid)
            if name is None:
                raise Refused(422, f"no filter call named the pod {args.pod} ({args.uid})")
            decision = self._decisions.get(name)
            if decision is None:
                if self._is_gang(name):
                    return {"Error": f"the gang of pod {args.pod} holds no room any more; filter decides again"}
                why = self._take(name, args)
                if why is not None:
                    return {"Error": why}
                decision = self._decisions[name]
            if decision.confirm(args.uid, args.node):
                return {"Error": ""}
            if args.uid in self._under_way:
                return {"Error": f"the Binding of pod {args.pod} is being created"}
            self._under_way.add(args.uid)
            decision.binding.add(args.uid)
            decision.expires_s = None
            self._changed.jobs.add(name)
            return None

    def create_binding(self, args: BindingArgs) -> tuple[bool, str]:
        """Create the Binding; return whether it is known what came of it, and why it is not there. Any thread may."""
        if self._binder is None:
            raise InternalFault("a Binding was begun without a binder")
        try:
            self._binder(args)
        except PlaceoptError as error:
            return True, str(error)
        except Exception as error:  # noqa: BLE001 - as a lost connection: the pod may be bound
            return False, f"whether pod {args.pod} is bound is not known: {type(error).__name__}: {error}"
        return True, ""

    def end_bind(self, args: BindingArgs, known: bool, why: str) -> dict[str, Any]:
        """Keep what came of a Binding, and return the answer; after a refusal the room may be given to others."""
        with self._lock:
            self._read_cluster()
            self._under_way.discard(args.uid)
            decision = self._decisions.get(self._job_of.get(args.uid, ""))
            if decision is None or not known or args.uid not in decision.binding:
                return {"Error": why}  # others stopped the job meanwhile, or it stays as it is
            self._changed.jobs.add(decision.job)
            decision.binding.discard(args.uid)
            if not why:
                decision.bound.add(args.uid)
                if len(decision.bound) == len(decision.nodes):
                    self._changed.record_outcome(decision.revision, "done", "all pods are bound")
            elif decision.ours and not decision.bound and not decision.binding:
                if len(decision.nodes) > 1:
                    decision.expires_s = self._clock() + self._bind_within_s
                else:
                    self._give_back(decision)
            return {"Error": why}

    def _is_gang(self, name: str) -> bool:
        return self._waiting[name].options[0].workers > 1 if name in self._waiting else False

    def _job_name(self, pod: Pod) -> str | None:
        """Return the job of a pod: by its UID, its gang, or its name, unless that is the name of another UID's job."""
        gang = None if pod.group is None else job_id(pod.group.id)
        name = self._job_of.get(_uid(pod)) or self._job_of.get(gang or pod.id)
        return None if gang is None and self._is_of_another(name, pod) else name

    def _is_of_another(self, name: str | None, pod: Pod) -> bool:
        record = self._waiting.get(name or "") or (self._decisions[name].record if name in self._decisions else None)
        pods = () if record is None or record.origin is None else record.origin.workers
        return pod.uid is not None and any(known.name == pod.id and known.id not in (None, pod.uid) for known in pods)

    def _decision(self, pod: Pod) -> Decision | None:
        name = self._job_name(pod)
        return None if name is None else self._decisions.get(name)

    def _filter(self, jobs: PodJobs, pod: Pod, args: ExtenderArgs) -> tuple[Sequence[str], dict[str, str]]:
        """Return the nodes for a pod, and the reason of every other node that was sent."""
        failed = {node: _UNKNOWN for node in args.nodes if node not in self._nodes}
        known = [node for node in args.nodes if node in self._nodes]
        decision = self._decision(pod)
        if decision is not None and self._may_move(decision, pod, known):
            self._give_back(decision)
            decision = None
        if decision is None and (pod.group is not None or self._is_gang(self._job_name(pod) or "")):
            decision, why = self._decide(jobs, pod, args, known)
            failed.update(why)
        elif decision is None:
            ranking = self._ranking(self._single(jobs, pod, args.pod), known)
            return [node for node in known if node not in ranking.refused], {**failed, **ranking.refused}
        if decision is None:
            return (), failed
        node = self._node_of(decision, pod, known)
        if node is None:
            why_not = f"all workers of {decision.job!r} that were placed are other pods"
        else:
            why_not = f"the pod was decided for node {node!r}, with all of {decision.job!r}"
            if _uid(pod) not in decision.asked:
                decision.asked.add(_uid(pod))
                self._changed.jobs.add(decision.job)
        return [n for n in known if n == node], {**failed, **{n: why_not for n in known if n != node}}

    def _may_move(self, decision: Decision, pod: Pod, known: Sequence[str]) -> bool:
        """Tell whether a decision should be made again: its node was not sent, and no other pod relies on it."""
        if decision.bound or decision.expires_s is None or decision.asked - {_uid(pod)}:
            return False
        return self._node_of(decision, pod, known) not in known

    def _node_of(self, decision: Decision, pod: Pod, allowed: Container[str]) -> str | None:
        """Return the node of a pod, None if all workers are other pods; a rank that the pod takes is a change."""
        uid, known = _uid(pod), len(decision.pods)
        node = decision.node_of(uid, allowed)
        if len(decision.pods) > known:
            self._changed.jobs.add(decision.job)
        self._job_of[uid] = decision.job
        return node

    def _single(self, jobs: PodJobs, pod: Pod, pod_object: dict[str, Any]) -> str:
        """
        Return the job of a pod alone, added if it is new.

        The API server gives a name again once its pod is gone. What waits under it is then the new pod's; what runs
        under it holds its room until the host says that it has ended, and the new pod's job is called by its UID, too.
        """
        name = self._job_name(pod)
        if name is None:
            job = jobs.single(pod_object)
            if job.id in self._decisions:
                job = job.model_copy(update={"id": job_id(f"{job.id}~{_uid(pod)}")})
            self._add(job, remove=tuple({job.id} & self._waiting.keys()))
            name = job.id
        self._job_of[_uid(pod)] = name
        return name

    def _decide(
        self, jobs: PodJobs, pod: Pod, args: ExtenderArgs, known: Sequence[str]
    ) -> tuple[Decision | None, dict[str, str]]:
        """Place the gang of a pod on the nodes that were sent; None and the reasons if it has no place."""
        name = self._job_name(pod)
        if name is None:
            name = self._add_gang(jobs, pod, args.pod)
        self._job_of[_uid(pod)] = name
        job = self._waiting[name]
        plan = self._engine.place([name], nodes=known, explain=False) if known else None
        if plan is not None and plan.placements:
            decision = self._start(job, plan, self._clock() + self._bind_within_s)
            return decision, {}
        ranking = self._ranking(name, known)
        workers = job.options[0].workers_min or job.options[0].workers
        text = f"the node has room, but {workers} workers of {name!r} have none together on the nodes that were sent"
        return None, {**ranking.refused, **{ranked.node: text for ranked in ranking.nodes}}

    def _add_gang(self, jobs: PodJobs, pod: Pod, pod_object: dict[str, Any]) -> str:
        group = pod.group
        if group is None:
            raise BadInput("body.Pod: no gang")
        count = group.rules.count
        if count is None or len(group.rules.parts) > 1:
            raise Unsupported(
                f"gang {group.id!r}: how many pods it has is not known; load it with the cluster, or annotate its pods"
            )
        job = jobs.gang(pod_object, count)
        self._add(job)
        self._job_of[job_id(group.id)] = job.id
        return job.id

    def _take(self, name: str, args: BindingArgs) -> str | None:
        """Take the room of a pod alone on a node; return why there is none."""
        if args.node not in self._nodes:
            return _UNKNOWN
        job = self._waiting[name]
        plan = self._engine.place([name], nodes=[args.node], explain=False)
        if not plan.placements:
            return self._ranking(name, [args.node]).refused.get(args.node, "a rule beyond the node keeps the pod off")
        self._start(job, plan, None).pods.setdefault(args.uid, 0)
        return None

    def _ranking(self, name: str, nodes: Iterable[str]) -> Ranking:
        return self._engine.rank(name, [node for node in nodes if node in self._nodes])


_UNKNOWN = "placeopt has no such node"


def _uid(pod: Pod) -> str:
    return pod.uid or pod.id
