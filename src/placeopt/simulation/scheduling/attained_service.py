"""Attained service: the GPU time that jobs have had, and its levels (LAS)."""

from __future__ import annotations

from bisect import bisect_right

GPU_SECOND = 1_000_000
"""In thousandths of a GPU x milliseconds."""


class AttainedService:
    """
    GPU time held so far, running or not, and the level that it makes.

    A job starts at level 0 and is one level higher from each of the bounds on. (Least attained service with levels:
    Tiresias, Gu et al., NSDI'19, section 3.2; CPU jobs attain nothing.)
    """

    def __init__(self, levels_gpu_s: tuple[int, ...]) -> None:
        self._levels = [level * GPU_SECOND for level in levels_gpu_s]
        self._had: dict[str, int] = {}
        self._since: dict[str, tuple[int, int]] = {}  # job -> time, thousandths of GPUs

    def start(self, job: str, milli: int, now_ms: int) -> None:
        """Let a job hold so much from now on."""
        self._since[job] = now_ms, milli

    def stop(self, job: str, now_ms: int) -> None:
        """Let a job hold nothing any more."""
        self._had[job] = self.attained(job, now_ms)
        del self._since[job]

    def attained(self, job: str, now_ms: int) -> int:
        """Return what a job has had by now, in thousandths of a GPU x milliseconds."""
        since, milli = self._since.get(job, (now_ms, 0))
        return self._had.get(job, 0) + (now_ms - since) * milli

    def level(self, job: str, now_ms: int) -> int:
        """Return the level of a job."""
        return bisect_right(self._levels, self.attained(job, now_ms))

    def forget(self, job: str) -> None:
        """Forget a job that has ended."""
        self._had.pop(job, None)
