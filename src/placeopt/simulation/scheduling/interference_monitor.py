"""Newcomers on shared GPUs are looked at after a while: do those who were there lose too much? (Horus: PAB)"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from placeopt.model import Placement
from placeopt.model.scheduling import Watch


class InterferenceMonitor:
    """Who is on which GPU, who is to be looked at when, and how fast those beside it ran before it came."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._on_gpu: dict[tuple[str, str], dict[str, None]] = {}
        self._due: dict[str, tuple[int, dict[str, int]]] = {}

    def occupy(self, placement: Placement) -> None:
        """Note that a job is somewhere."""
        for gpu in _gpus(placement):
            self._on_gpu.setdefault(gpu, {})[placement.job] = None

    def vacate(self, placement: Placement) -> None:
        """Note that it is there no more; it is not looked at then."""
        for gpu in _gpus(placement):
            del self._on_gpu[gpu][placement.job]
        self._due.pop(placement.job, None)

    def start(self, placement: Placement, new: set[str], now_ms: int, slowdown: Callable[[str], int]) -> None:
        """Note that a job has started beside others, but for ``new`` ones, whose slowdown is asked for as it was."""
        beside = self._beside(placement) - new
        if beside:
            before = {other: slowdown(other) for other in sorted(beside)}
            self._due[placement.job] = now_ms + self._watch.after_ms, before

    def holds_back(self, new: Iterable[Placement]) -> bool:
        """Tell whether nobody else may start, for one of ``new`` or from before that is to be looked at."""
        return self._watch.one_by_one and (bool(self._due) or any(self._beside(one) for one in new))

    def _beside(self, placement: Placement) -> set[str]:
        return {other for gpu in _gpus(placement) for other in self._on_gpu[gpu]} - {placement.job}

    @property
    def next_ms(self) -> int | None:
        """When somebody is to be looked at next; None: never."""
        return min((at for at, _ in self._due.values()), default=None)

    def due(self, now_ms: int) -> list[tuple[str, dict[str, int]]]:
        """Return who is to be looked at now, with the slowdown of the others then, and forget them."""
        found = [(job, before) for job, (at, before) in sorted(self._due.items()) if at <= now_ms]
        for job, _ in found:
            del self._due[job]
        return found

    def disturbs(self, before: dict[str, int], slowdown: Callable[[str], int]) -> bool:
        """Tell whether one of those beside a newcomer has lost too much speed; ``before`` of those that still run."""
        speed = 100 - self._watch.slower_percent
        return any(slowdown(other) * speed >= 100 * then for other, then in before.items())


def _gpus(placement: Placement) -> list[tuple[str, str]]:
    return [(one.node, gpu) for one in placement.assignments for gpu in one.gpus]
