"""Use of GPU time: granted, active, useful, idle, and idle on nodes partly in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from placeopt.errors import BadInput

Gpu = tuple[str, int]
"""Node and index."""


@dataclass(frozen=True)
class GpuUse:
    """The GPUs that a job holds from ``start_ms`` to ``end_ms``."""

    start_ms: int
    end_ms: int
    milli: Mapping[Gpu, int]
    """Thousandths of each GPU."""
    percent: float = 0
    """Utilisation of each of the GPUs by the job."""


@dataclass(frozen=True)
class Occupancy:
    """
    Sums over a window, in GPU-milliseconds but ``granted`` and ``idle``, which are in thousandths of them.

    ``granted`` + ``idle`` is the whole, unless GPUs are overcommitted (then ``idle`` counts what is left of each, at
    least 0).
    """

    window_ms: int
    gpus: int
    granted: int
    idle: int
    active: int
    """Held by at least one job."""
    busy_percent: float
    """Of utilisation: percent x GPU-ms, at most 100 a GPU."""
    stranded: int
    """Idle GPUs of nodes that are neither idle nor full."""

    @property
    def total(self) -> int:
        """GPU-milliseconds of the window."""
        return self.window_ms * self.gpus

    @property
    def allocation(self) -> float:
        """Part of the GPUs' time that was granted."""
        return self.granted / (1000 * self.total) if self.total else 0.0

    @property
    def active_rate(self) -> float:
        """Part of the GPUs' time in which a job held some of them."""
        return self.active / self.total if self.total else 0.0

    @property
    def utilisation(self) -> float:
        """Part of the GPUs' time that jobs used, by their stated utilisation."""
        return self.busy_percent / (100 * self.total) if self.total else 0.0

    @property
    def utilisation_of_active(self) -> float:
        """Used part of the time in which GPUs were held by jobs (as SODA III-A counts)."""
        return self.busy_percent / (100 * self.active) if self.active else 0.0

    @property
    def fragmentation(self) -> float:
        """Part of the GPUs' time that was idle on nodes partly in use."""
        return self.stranded / self.total if self.total else 0.0


def occupancy(uses: Iterable[GpuUse], gpus_of: Mapping[str, int], start_ms: int, end_ms: int) -> Occupancy:
    """
    Return the use of GPU time in a window.

    Parameters
    ----------
    uses
        The GPUs that jobs held; time outside the window does not count.
    gpus_of
        GPUs of every node.
    start_ms, end_ms
        The window.
    """
    window = max(0, end_ms - start_ms)
    changes: list[tuple[int, int, Gpu, int, float]] = []  # time, jobs more or fewer, GPU, milli, percent
    for use in uses:
        begin, end = max(use.start_ms, start_ms), min(use.end_ms, end_ms)
        if begin < end:
            for gpu, milli in use.milli.items():
                changes.append((begin, 1, gpu, milli, use.percent))
                changes.append((end, -1, gpu, -milli, -use.percent))
    changes.sort(key=lambda change: change[0])
    jobs: dict[Gpu, int] = {}
    milli_of: dict[Gpu, int] = {}
    percent_of: dict[Gpu, float] = {}
    gpus_held: dict[str, int] = {}
    now = start_ms
    granted = active = stranded = used = 0  # integrals
    at_granted = at_used = at_active = at_stranded = 0  # of now
    busy: float = 0
    at_busy: float = 0
    for at, sign, gpu, milli, percent in changes:
        if at > now:
            span = at - now
            granted += at_granted * span
            used += at_used * span
            active += at_active * span
            busy += at_busy * span
            stranded += at_stranded * span
            now = at
        node = gpu[0]
        before_milli, before_percent, before_jobs = milli_of.get(gpu, 0), percent_of.get(gpu, 0), jobs.get(gpu, 0)
        milli_of[gpu], percent_of[gpu] = before_milli + milli, before_percent + percent
        jobs[gpu] = before_jobs + sign
        at_granted += milli
        at_used += min(1000, before_milli + milli) - min(1000, before_milli)
        at_busy += min(100, before_percent + percent) - min(100, before_percent)
        if (before_jobs == 0) != (jobs[gpu] == 0):
            count, size = gpus_held.get(node, 0), gpus_of[node]
            gpus_held[node] = count + sign
            at_active += sign
            at_stranded += _stranded(count + sign, size) - _stranded(count, size)
    return Occupancy(
        window_ms=window,
        gpus=sum(gpus_of.values()),
        granted=granted,
        idle=1000 * window * sum(gpus_of.values()) - used,
        active=active,
        busy_percent=busy,
        stranded=stranded,
    )


def _stranded(held: int, size: int) -> int:
    return size - held if held else 0


Steps = list[tuple[int, int]]
"""(time in ms, amount from then on), times rising; the first is that of the first change, or 0 if that is later."""


def fragments_over_time(uses: Iterable[GpuUse], gpus_of: Mapping[str, int]) -> Steps:
    """
    Return the number of idle GPUs on nodes that are neither idle nor full.

    Parameters
    ----------
    uses
        The GPUs that jobs held.
    gpus_of
        GPUs of every node.
    """
    return _over_time(uses, gpus_of, None, lambda idle, gpus: idle if idle < gpus else 0)


def slots_over_time(
    uses: Iterable[GpuUse], gpus_of: Mapping[str, int], size: int, domain_of: Mapping[str, str] | None = None
) -> Steps:
    """
    Return the number of disjoint slots of ``size`` idle GPUs: a domain of f idle GPUs has ``f // size``.

    Parameters
    ----------
    uses
        The GPUs that jobs held.
    gpus_of
        GPUs of every node.
    size
        GPUs of a slot, at least 1.
    domain_of
        Of every node, the rack or other domain that holds a slot; None: a slot lies on one node.

    Raises
    ------
    BadInput
        If ``size`` is below 1.
    """
    if size < 1:
        raise BadInput(f"size: {size}, expected 1 GPU or more")
    return _over_time(uses, gpus_of, domain_of, lambda idle, _: idle // size)


def _over_time(
    uses: Iterable[GpuUse],
    gpus_of: Mapping[str, int],
    domain_of: Mapping[str, str] | None,
    count: Callable[[int, int], int],
) -> Steps:
    """Return the sum over domains of ``count(idle GPUs, all GPUs)`` over time."""
    domain = dict(zip(gpus_of, gpus_of, strict=True)) if domain_of is None else domain_of
    gpus: dict[str, int] = {}
    for node, size in gpus_of.items():
        gpus[domain[node]] = gpus.get(domain[node], 0) + size
    idle = dict(gpus)
    total = sum(count(size, size) for size in gpus.values())
    changes: list[tuple[int, int, Gpu]] = []  # ends first at one moment
    for use in uses:
        for gpu in use.milli:
            changes += [(use.start_ms, 1, gpu), (use.end_ms, -1, gpu)]
    changes.sort()
    out: Steps = [(min(0, changes[0][0] if changes else 0), total)]
    jobs: dict[Gpu, int] = {}
    for moment, sign, gpu in changes:
        before = jobs.get(gpu, 0)
        jobs[gpu] = before + sign
        if (before == 0) != (jobs[gpu] == 0):
            where = domain[gpu[0]]
            total -= count(idle[where], gpus[where])
            idle[where] -= sign
            total += count(idle[where], gpus[where])
        if out[-1][0] == moment:
            out[-1] = (moment, total)
        else:
            out.append((moment, total))
    return out
