"""The actions of a plan, carried out one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from placeopt.actions import Action
from placeopt.drivers.backoff import Backoff
from placeopt.drivers.kubernetes.api import Object
from placeopt.drivers.kubernetes.marks import Mark, has_controller
from placeopt.drivers.kubernetes.outcomes import OutcomeWatch
from placeopt.drivers.kubernetes.pods import PodCalls
from placeopt.drivers.kubernetes.starts import start_pods
from placeopt.drivers.round_report import DONE, Applied, RoundReport
from placeopt.model import Instance, Job

EVICTED_S = 30.0
"""Seconds for which an accepted eviction is remembered; the deletion shows in the pod long before."""
FIRST_S, MOST_S = 30.0, 600.0
"""How long a job that could not be evicted is no victim again."""
UNCHANGEABLE = {"movable": False, "shrinkable": False, "preemptible": False}


class Applier:
    """
    Carries actions out, and remembers the evictions that were accepted and refused.

    ``max_actions``: Most actions of one call of `apply`. ``may_act``: Asked before every action.
    """

    def __init__(self, calls: PodCalls, outcomes: OutcomeWatch, max_actions: int, may_act: Callable[[], bool]) -> None:
        self._calls, self._outcomes = calls, outcomes
        self._max_actions, self._may_act = max_actions, may_act
        self._evicted: dict[str, float] = {}
        self._refused: Backoff[str] = Backoff(FIRST_S, MOST_S)

    def evicted(self, now: float) -> Collection[str]:
        """Return the UIDs of pods whose eviction was accepted lately."""
        self._evicted = {uid: at for uid, at in self._evicted.items() if now - at < EVICTED_S}
        return self._evicted.keys()

    def with_changeable_jobs(self, instance: Instance, now: float) -> Instance:
        """
        Return a round in which only jobs that can be evicted may be changed.

        Those are jobs all of whose pods something makes again, and whose eviction was not refused lately.
        """
        refused = self._refused.paused(now)
        jobs = {job.id: job for job in instance.jobs}
        fixed = {
            held.job
            for held in instance.running
            if (held.movable or held.shrinkable or held.preemptible)
            and (held.job in refused or not self._comes_again(jobs[held.job]))
        }
        if not fixed:
            return instance
        running = tuple(
            held.model_copy(update=UNCHANGEABLE) if held.job in fixed else held for held in instance.running
        )
        return instance.model_copy(update={"running": running})

    def _comes_again(self, job: Job) -> bool:
        pods = [self._pod(worker.name, worker.id) for worker in job.origin.workers] if job.origin is not None else []
        return bool(pods) and all(pod is not None and has_controller(pod) for pod in pods)

    def apply(self, actions: Sequence[Action], leaving: Collection[str], report: RoundReport) -> None:
        """
        Carry out what can be done now; the rest is decided again in a later turn.

        A start waits until the pods that it takes the room of are gone. ``leaving``: Nodes where pods are being
        deleted. Raises `Unreachable`.
        """
        undone: set[int] = set()
        done = 0
        for number, action in enumerate(actions):
            if undone & set(action.after) or done >= self._max_actions or not self._may_act():
                undone.add(number)
                report.deferred += 1
            elif action.do == "start":
                if any(part.node in leaving for part in action.parts):
                    report.deferred += 1
                    continue
                done += 1
                self._start(action, report)
            else:
                done += 1
                undone.add(number)  # pods take their time to end
                self._evict(action, report)

    def _start(self, action: Action, report: RoundReport) -> None:
        pods: list[tuple[Object, Mark]] = []
        for part in action.parts:
            pod = self._pod(part.origin.name, part.origin.id) if part.origin is not None else None
            if pod is not None:
                gpus = ",".join(map(str, part.gpus))
                pods.append((pod, Mark(report.id, report.plan, action.job, len(action.parts), part.node, gpus)))
        came = Applied("refused", "a pod of it is gone")
        if len(pods) == len(action.parts):
            came = start_pods(self._calls, pods)
        if came.result == "done":
            self._outcomes.started((report.id, action.job), time.monotonic())
        report.add("start", action.job, came, nodes=tuple(part.node for part in action.parts), parts=action.parts)

    def _evict(self, action: Action, report: RoundReport) -> None:
        """Evict the pods that an action stops; those of a gang until one is refused."""
        now, came, nodes = time.monotonic(), DONE, list[str]()
        for part in action.leaves:
            pod = self._pod(part.origin.name, part.origin.id) if part.origin is not None else None
            if pod is None:
                continue
            why = self._calls.evict(pod)
            if why is not None:
                came = Applied("refused", why)
                break
            self._evicted[pod["metadata"]["uid"]] = now
            nodes.append(part.node)
        if came is DONE:
            self._refused.succeed(action.job)
        else:
            self._refused.fail(action.job, now)
        report.add(action.do, action.job, came, nodes=tuple(nodes))

    def _pod(self, name: str, uid: str | None) -> Object | None:
        namespace, _, own = name.partition("/")
        pod = self._calls.store.get(namespace, own)
        return pod if pod is not None and pod["metadata"]["uid"] == uid else None
