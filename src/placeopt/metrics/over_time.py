"""Idle GPUs over time: on nodes partly in use, and as slots for further jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from placeopt.errors import BadInput
from placeopt.metrics.gpu_time import Gpu, GpuUse

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
