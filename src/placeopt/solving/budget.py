"""What a round may use: time, threads, memory; and what that leaves each solve."""

from __future__ import annotations

import time
from dataclasses import dataclass

from placeopt.solvers.result import SolveOptions


@dataclass(frozen=True)
class Budget:
    """What a round may use. Times are of ``time.monotonic()``."""

    started: float
    deadline: float
    time_limit_s: float
    gap: float = 0.0
    threads: int = 1
    seed: int = 0
    deterministic: bool = False
    memory_limit_mib: int | None = None
    solver_options: tuple[tuple[str, str], ...] = ()

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def reserve_s(self) -> float:
        """Seconds kept back between the deadline of the stages and the end of the time limit."""
        return self.started + self.time_limit_s - self.deadline

    def options(self, work: float, seconds: float | None = None) -> SolveOptions:
        """
        What a solve on one thread is told: to take at most ``seconds`` of what is left, by default all of it.

        In deterministic mode ``work`` ends it, and the clock is only a guard.
        """
        most = self.left_s if seconds is None or self.deterministic else min(seconds, self.left_s)
        return SolveOptions(
            time_limit_s=most,
            seed=self.seed,
            deterministic=self.deterministic,
            work_limit=work if self.deterministic else None,
            memory_limit_mib=self.memory_limit_mib,
        )
