"""From the reading of a host to the plan of a round, as every driver decides it."""

from __future__ import annotations

import threading
import time

from placeopt.drivers.options import DriverOptions
from placeopt.drivers.round_report import RoundReport
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan
from placeopt.scheduling import LiveScheduler

LEAST_SOLVE_S = 0.1


class Decider:
    """
    Readings of a host, and rounds over the last one; what is known of both goes into the report of the round.

    ``engine`` solves the rounds; its caller closes it. ``stop`` ends a solve.
    """

    def __init__(self, engine: Engine, options: DriverOptions, stop: threading.Event) -> None:
        self.live = LiveScheduler(engine, options.policy, telemetry=options.telemetry, overcommits=False)
        self._deterministic, self._stop = options.deterministic, stop
        self._said: frozenset[str] = frozenset()

    def describe(self, instance: Instance, report: RoundReport) -> None:
        """Take the figures of a reading; what the reader left out, drained or assumed is a note where that is new."""
        report.describe(instance)
        lines = [str(note) for note in instance.reading]
        report.notes += [line for line in lines if line not in self._said]
        self._said = frozenset(lines)

    def decide(
        self, instance: Instance, report: RoundReport, until: float, *, waiting_only: bool = False
    ) -> Plan | None:
        """
        Take a reading, and return the plan of its round; None where none could change anything.

        ``until``: When to end, by ``time.monotonic``. ``waiting_only``: As of `LiveScheduler.decide`.
        """
        plan = None
        self.live.follow(instance)
        report.unmeasured = self.live.usage.fault
        if self.live.wants_round and not self._stop.is_set():
            limit_s = max(LEAST_SOLVE_S, until - time.monotonic())
            plan = self.live.decide(limit_s, self._stop, waiting_only=waiting_only, deterministic=self._deterministic)
            report.planned(plan, {held.job for held in self.live.snapshot.running})
        report.fired = dict(sorted(self.live.fired.items()))
        return plan
