"""What idle GPUs are good for as time goes by: pieces left over on nodes, and slots for jobs to come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from placeopt.errors import BadInput
from placeopt.metrics.gpu_time import Gpu, GpuUse

Steps = list[tuple[int, int]]
"""(time in ms, amount from then on), times rising; the first is that of the first change, or 0 if that is later."""


def fragments_over_time(stays: Iterable[GpuUse], gpus_of: Mapping[str, int]) -> Steps:
    """
    Count the idle GPUs of nodes that are neither idle nor full.

    Parameters
    ----------
    stays
        Who held what and when.
    gpus_of
        GPUs of every node.
    """
    return _over_time(stays, gpus_of, None, lambda idle, gpus: idle if idle < gpus else 0)


def slots_over_time(
    stays: Iterable[GpuUse], gpus_of: Mapping[str, int], size: int, domain_of: Mapping[str, str] | None = None
) -> Steps:
    """
    Count disjoint slots of ``size`` idle GPUs: a domain of f idle GPUs has ``f // size``.

    Parameters
    ----------
    stays
        Who held what and when.
    gpus_of
        GPUs of every node.
    size
        GPUs of a slot, at least 1.
    domain_of
        Rack, or whatever may hold a slot, of every node; left out, a slot lies on one node.

    Raises
    ------
    BadInput
        If ``size`` is below 1.
    """
    if size < 1:
        raise BadInput(f"size: {size}, expected 1 GPU or more")
    return _over_time(stays, gpus_of, domain_of, lambda idle, _: idle // size)


def _over_time(
    stays: Iterable[GpuUse],
    gpus_of: Mapping[str, int],
    domain_of: Mapping[str, str] | None,
    worth: Callable[[int, int], int],
) -> Steps:
    """Sum up what domains are worth by their idle GPUs and by all that they have."""
    domain = dict(zip(gpus_of, gpus_of, strict=True)) if domain_of is None else domain_of
    gpus: dict[str, int] = {}
    for node, count in gpus_of.items():
        gpus[domain[node]] = gpus.get(domain[node], 0) + count
    idle = dict(gpus)
    total = sum(worth(count, count) for count in gpus.values())
    changes: list[tuple[int, int, Gpu]] = []  # ends first at one moment
    for stay in stays:
        for gpu in stay.milli:
            changes += [(stay.start_ms, 1, gpu), (stay.end_ms, -1, gpu)]
    changes.sort()
    out: Steps = [(min(0, changes[0][0] if changes else 0), total)]
    jobs: dict[Gpu, int] = {}
    for moment, sign, gpu in changes:
        before = jobs.get(gpu, 0)
        jobs[gpu] = before + sign
        if (before == 0) != (jobs[gpu] == 0):
            where = domain[gpu[0]]
            total -= worth(idle[where], gpus[where])
            idle[where] -= sign
            total += worth(idle[where], gpus[where])
        if out[-1][0] == moment:
            out[-1] = (moment, total)
        else:
            out.append((moment, total))
    return out
