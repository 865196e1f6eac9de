"""Whole rounds, solved by a second engine in a thread of its own while decisions go on."""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable

from placeopt.errors import PlaceoptError
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan
from placeopt.model.plan import InstanceRef
from placeopt.scheduling import LiveScheduler, Scheduling, Telemetry
from placeopt.service.messages import CommitResult, RoundProgress, RoundStatus, StartRound
from placeopt.service.refused import Refused, refusal
from placeopt.solving.bounds import Progress

MOST_KEPT = 100
"""Rounds whose status can be asked for."""
PLANS_KEPT = 5
"""Rounds whose plan is kept; a plan of 100,000 jobs takes tens of megabytes."""
MOST_QUEUED = 8
OVER = ("done", "failed", "cancelled", "interrupted")
Commit = Callable[[Plan, StartRound], CommitResult]
Told = Callable[[RoundStatus], None]


class Rounds:
    """
    The rounds of one service.

    Parameters
    ----------
    commit
        Commits the plan of a round that asked for it.
    told
        Called once with every round that is over.
    interrupted
        Rounds that a former service began and did not end.
    scheduling
        The policy that decides rounds; None: the cluster's policy of rounds, by the method of each request.
    telemetry
        Where the use of GPUs is measured, for that policy; None: nowhere.
    """

    def __init__(
        self,
        commit: Commit,
        told: Told,
        interrupted: Iterable[RoundStatus] = (),
        scheduling: Scheduling | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._commit, self._told, self._scheduling, self._telemetry = commit, told, scheduling, telemetry
        self._lock = threading.Lock()
        self._rounds = OrderedDict((status.id, status) for status in interrupted)
        self._cancel: dict[str, threading.Event] = {}
        self._queue: queue.Queue[tuple[str, Instance, StartRound] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="placeopt-rounds", daemon=True)
        self._thread.start()

    def start(self, name: str, instance: Instance, request: StartRound) -> RoundStatus:
        """
        Begin a round under a new name, or let it wait for those before it.

        Raises
        ------
        Refused
            503, if too many wait.
        """
        with self._lock:
            if len(self._cancel) > MOST_QUEUED:  # those that wait, cancelled ones too, and the one that runs
                raise Refused(503, f"{MOST_QUEUED} rounds wait already", more={"retry_after_s": 1})
            status = RoundStatus(
                id=name,
                state="queued",
                revision=instance.revision,
                time_limit_s=request.time_limit_s,
            )
            self._rounds[status.id] = status
            self._cancel[status.id] = threading.Event()
            self._forget()
        self._queue.put((status.id, instance, request))
        return status

    def find(self, name: str) -> RoundStatus:
        """
        Return a round.

        Raises
        ------
        Refused
            404, if there is none of the name, or it was long ago.
        """
        with self._lock:
            if name not in self._rounds:
                raise Refused(404, f"round {name!r}: none of this name, or long ago; plans do not outlive the service")
            return self._rounds[name]

    def latest(self) -> tuple[RoundStatus, ...]:
        """Return all rounds without their plans, the latest first."""
        with self._lock:
            return tuple(status.model_copy(update={"plan": None}) for status in reversed(self._rounds.values()))

    def cancel(self, name: str) -> RoundStatus:
        """Stop a round as soon as possible; one that is over stays as it is."""
        self.find(name)
        with self._lock:
            if (event := self._cancel.get(name)) is not None:
                event.set()
            if self._rounds[name].state == "queued":
                self._rounds[name] = self._rounds[name].model_copy(update={"state": "cancelled"})
            return self._rounds[name]

    def committed(self, name: str, result: CommitResult) -> None:
        """Keep what the commit of a round's plan came to, if the round is still known."""
        with self._lock:
            if name in self._rounds:
                self._rounds[name] = self._rounds[name].model_copy(update={"commit": result})

    def close(self) -> None:
        """Stop what runs, and end."""
        with self._lock:
            for event in self._cancel.values():
                event.set()
            self._queue.put(None)
        self._thread.join()

    def _forget(self) -> None:
        """Drop the oldest rounds that are over, and the plans of all but the latest."""
        over = [name for name, status in self._rounds.items() if status.state in OVER and name not in self._cancel]
        for name in over[: max(0, len(self._rounds) - MOST_KEPT)]:
            del self._rounds[name]
        for name in over[:-PLANS_KEPT]:
            if name in self._rounds and self._rounds[name].plan is not None:
                self._rounds[name] = self._rounds[name].model_copy(update={"plan": None})

    def _set(self, name: str, **fields: object) -> RoundStatus:
        with self._lock:
            self._rounds[name] = self._rounds[name].model_copy(update=fields)
            return self._rounds[name]

    def _run(self) -> None:
        with Engine() as engine:
            rules = self._scheduling
            live = None if rules is None else LiveScheduler(engine, rules, telemetry=self._telemetry)
            while (entry := self._queue.get()) is not None:
                name, instance, request = entry
                if self._cancel[name].is_set():
                    status = self._set(name, state="cancelled")
                else:
                    status = self._solve(live or engine, name, instance, request)
                self._told(status)
                with self._lock:
                    del self._cancel[name]

    def _solve(
        self, decides: Engine | LiveScheduler, name: str, instance: Instance, request: StartRound
    ) -> RoundStatus:
        self._set(name, state="running")
        cancel = self._cancel[name]

        def news(progress: Progress) -> None:
            told = RoundProgress(
                seconds=progress.seconds,
                stage=progress.stage,
                value=progress.value,
                value_bound=progress.value_bound,
                gap=progress.gap,
            )
            self._set(name, progress=told)

        try:
            if isinstance(decides, LiveScheduler):
                plan = _decided(decides, instance, request, cancel)
            else:
                plan = decides.solve(
                    instance,
                    method=request.method,
                    time_limit_s=request.time_limit_s,
                    seed=request.seed,
                    deterministic=request.deterministic,
                    cancel=cancel,
                    on_progress=news,
                )
        except PlaceoptError as error:
            return self._set(name, state="cancelled" if cancel.is_set() else "failed", detail=str(error))
        except Exception as error:  # noqa: BLE001 - a round that fails ends no service
            return self._set(name, state="failed", detail=refusal(error).detail)
        fields: dict[str, object] = {"plan": plan, "gap": plan.gap, "seconds": plan.seconds.total}
        if isinstance(decides, LiveScheduler):
            fields["fired"] = dict(sorted(decides.fired.items()))
        if request.commit and not cancel.is_set():
            try:
                fields["commit"] = self._commit(plan, request)
            except PlaceoptError as error:
                fields["detail"] = str(error)
        return self._set(name, state="cancelled" if cancel.is_set() else "done", **fields)


def _decided(live: LiveScheduler, instance: Instance, request: StartRound, cancel: threading.Event) -> Plan:
    """Return what a policy decides in the cluster as it is now, as a plan of the service's own round."""
    live.follow(instance)
    plan = live.decide(request.time_limit_s, cancel, deterministic=request.deterministic)
    of = InstanceRef(name=instance.name, digest=instance.digest, revision=instance.revision)
    return plan.model_copy(update={"instance": of})
