"""A scheduling policy on a cluster that others run: readings in, plans out; what a reading shows is what happened."""

from __future__ import annotations

import operator
import threading
from collections import Counter
from collections.abc import Hashable, Mapping

from placeopt.errors import BadInput
from placeopt.live_cluster.edits import BESIDE_NODES
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan, Policy
from placeopt.scheduling.adapt import adapted
from placeopt.scheduling.division import division_of
from placeopt.scheduling.fired import fired
from placeopt.scheduling.live_queue import LiveQueue, of_alike_workers, submitted
from placeopt.scheduling.live_rounds import LiveRounds
from placeopt.scheduling.placement_amounts import Amounts
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.predictions import Beliefs
from placeopt.scheduling.setting import Setting
from placeopt.scheduling.telemetry import Measured, Telemetry, Usage


def setting_of(now: Instance, restart_ms: int = 0, *, overcommits: bool = True) -> Setting:
    """Return what a reading shows a scheduler that begins with it; ``overcommits``: As of `Setting`."""
    held = {running.job: running for running in now.running}
    return Setting(
        beginning=now.model_copy(update={"jobs": tuple(job for job in now.jobs if job.id in held)}),
        hardware=now.cluster,
        known=tuple(submitted(job, held.get(job.id)) for job in now.jobs),
        overcommits=overcommits,
        restart_ms=restart_ms,
    )


def scheduling_in(given: Scheduling, setting: Setting) -> Scheduling:
    """
    Return a policy as it is in a cluster.

    What its policy of rounds leaves out is as the host's says, and where the host over-commits no GPU, none is.
    """
    host = setting.beginning.policy
    left_out = host.model_fields_set - given.policy.model_fields_set - {"name"}
    if given.divides is not None:
        left_out -= {"queues"}
    name = given.policy.name if "name" in given.policy.model_fields_set else given.name
    policy = given.policy.model_copy(update={"name": name, **{field: getattr(host, field) for field in left_out}})
    own = adapted(given.model_copy(update={"policy": policy}), setting)
    if setting.overcommits or own.policy.share_mode != "overcommit":
        return own
    alone = own.policy.model_copy(update={"share_mode": "exclusive", "jobs_per_gpu_max": None})
    return own.model_copy(update={"policy": alone})


def holds_unlisted(now: Instance) -> bool:
    """Return whether something runs on a GPU that its node's machine does not list, as hosts may show for a while."""
    size = {machine.id: len(machine.gpus) for machine in now.cluster.machines}
    gpus = {node.id: size[node.machine] for node in now.cluster.nodes}
    return any(
        int(gpu) >= gpus.get(assignment.node, 0)
        for held in now.running
        for assignment in held.assignments
        for gpu in assignment.gpus
    )


def refuse_unread(scheduling: Scheduling, telemetry: Telemetry | None = None) -> None:
    """Raise ``BadInput`` if a policy reads what no reading of a cluster shows, and nothing measures it."""
    if scheduling.watch is not None and telemetry is None:
        raise BadInput(
            f"policy {scheduling.name!r}: watches how fast jobs run, which no reading shows; state where that is "
            "measured (--telemetry), or take another policy"
        )


class LiveScheduler:
    """
    Readings of one cluster, and rounds over the last one under a scheduling policy.

    Nothing that was decided is taken as done: a job that a reading shows waiting waits, and one that others started
    runs. What the policy of rounds leaves out is as the host's says. ``engine``: Its caller closes it. ``restart_ms``:
    How long a stopped job takes to start again; policies that adapt stop jobs where that is known. ``telemetry``: Where
    use is measured: readings are corrected by it, and how fast a job runs is as its utilisation then.
    ``overcommits``: Whether the host gives a GPU to several jobs that ask for all of it; the drivers' hosts do not, and
    policies that would over-commit GPUs give each to one job there.

    Raises
    ------
    BadInput
        If the policy reads what no reading shows.
    """

    def __init__(
        self,
        engine: Engine,
        scheduling: Scheduling,
        *,
        restart_ms: int = 0,
        telemetry: Telemetry | None = None,
        overcommits: bool = True,
    ) -> None:
        refuse_unread(scheduling, telemetry)
        self._beliefs, self._telemetry, self._measured = Beliefs(scheduling), telemetry, Measured()
        self.usage = Usage()
        """What was measured with the last reading."""
        self._engine, self._given = engine, scheduling.model_copy(update={"predictions": ()})
        self._restart_ms, self._overcommits = restart_ms, overcommits
        self._live: LiveRounds | LiveQueue | None = None
        self._scheduling = scheduling
        self._parts: Mapping[Hashable, Amounts] | None = None
        """Of the policy's arrays: they follow the jobs that are there."""
        self.before: Instance | None = None
        """The last reading."""
        self.fired: Counter[str] = Counter()
        """Mechanism -> how often it acted since the last reading was taken, as `fired` names them."""

    @property
    def wants_round(self) -> bool:
        """Whether a round could change anything: jobs wait, or the policy changes what runs while none waits."""
        return self._begun.wants_round

    @property
    def snapshot(self) -> Instance:
        """The round that plans are of; raises `BadInput` before the first reading."""
        return self._begun.snapshot

    @property
    def _begun(self) -> LiveRounds | LiveQueue:
        if self._live is None:
            raise BadInput("no reading yet; call follow(reading) first")
        return self._live

    def policy_in(self, now: Instance) -> Policy:
        """Return the policy of rounds in a reading."""
        return scheduling_in(self._given, self._setting(now)).policy

    def _setting(self, now: Instance) -> Setting:
        return setting_of(now, self._restart_ms, overcommits=self._overcommits)

    def follow(self, now: Instance) -> None:
        """Take a reading: with what is predicted of its jobs, corrected by what is measured beside it."""
        self.fired.clear()
        stated, now = now.jobs, self._beliefs.believed(now)
        self.fired += Counter({"predictions: believed": sum(map(operator.ne, stated, now.jobs))})
        if self._telemetry is not None:
            self.usage = self._telemetry.read()
            predicted, now = now.jobs, self._measured.correct(now, self.usage)
            self.fired += Counter({"telemetry: corrected": sum(map(operator.ne, predicted, now.jobs))})
        setting = self._setting(now)
        scheduling = scheduling_in(self._given, setting)
        if scheduling.rounds != "whole":
            setting = self._setting(of_alike_workers(now))
        division = division_of(setting, scheduling)
        parts = None if division is None else division.by_jobs
        is_new = self.before is None or parts != self._parts or self._is_new(self.before, now, scheduling)
        if self._live is None or is_new:
            self._scheduling, self._parts = scheduling, parts
            self._begin(setting, now)
        else:
            self._live.follow(now)
        self.before = now

    def decide(
        self, time_limit_s: float, cancel: threading.Event, *, waiting_only: bool = False, deterministic: bool = False
    ) -> Plan:
        """Return the plan of a round within a time limit; ``waiting_only``: As of `LiveRounds`."""
        live = self._begun
        if isinstance(live, LiveQueue):
            live.usage = self.usage
        plan = live.decide(time_limit_s, cancel, waiting_only=waiting_only, deterministic=deterministic)
        self.fired += fired(self._scheduling, live.snapshot, plan)
        if isinstance(live, LiveQueue):
            self.fired += live.fired
        return plan

    def _begin(self, setting: Setting, now: Instance) -> None:
        if self._scheduling.rounds == "whole":
            self._live = LiveRounds(self._engine, self._scheduling)
            self._live.follow(now)
        else:
            earlier = self._live if isinstance(self._live, LiveQueue) else None
            self._live = LiveQueue(self._engine, setting, self._scheduling, now, earlier)

    def _is_new(self, before: Instance, now: Instance, scheduling: Scheduling) -> bool:
        """Return whether what began with earlier readings cannot go on with this one."""
        if scheduling.digest != self._scheduling.digest:
            return True
        if isinstance(self._live, LiveRounds):
            return False
        if before.running != now.running and holds_unlisted(now):  # an engine takes such jobs in a load alone
            return True
        return (before.name, before.slowdowns) != (now.name, now.slowdowns) or any(
            getattr(before.cluster, part) != getattr(now.cluster, part) for part in BESIDE_NODES
        )
