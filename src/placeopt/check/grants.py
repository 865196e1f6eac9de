"""Is each job under ``fraction`` granted its part of what no job on the GPU requests?"""

from placeopt.check.case import CheckCase
from placeopt.model import Demand

Range = tuple[int, int]
"""Request and limit of a job, in thousandths of a GPU."""


def check_grants(case: CheckCase) -> None:
    """
    Under ``fraction`` the jobs on a GPU are granted above their requests, up to their limits, what no job requests.

    In the other modes a job is granted its request; one that runs and stays may keep what it holds. Only jobs that the
    plan places are judged, with all jobs on the GPU taken into account. Shares beyond request and limit are judged by
    rule ``gpu_milli``; GPUs of unknown nodes by ``unknown_node``.
    """
    more = case.policy.share_mode == "fraction"
    flexible = [held for held in case.held if held.option.demand.gpu_milli_limit is not None]
    placed = {placement.job for placement in case.plan.placements} if flexible else set()
    on_gpu: dict[str, dict[str, dict[str, Range]]] = {}  # node -> GPU -> job -> range
    for held in flexible:
        low, high = _range(held.option.demand)
        if held.job.id not in placed:
            continue
        for assignment in held.placement.assignments:
            if assignment.node not in case.on_node:
                continue
            if assignment.node not in on_gpu:
                on_gpu[assignment.node] = _ranges(case, assignment.node)
            for gpu, milli in assignment.gpus.items():
                due = _granted(on_gpu[assignment.node][gpu])[held.job.id] if more else low
                if not more and case.stays(held.job.id) and milli == _held_now(case, held.job.id, assignment.node, gpu):
                    continue
                if low <= milli <= high and milli != due:
                    where = f"job {held.job.id!r} on node {assignment.node!r}"
                    case.add("gpu_grant", where, f"{milli} milli of GPU {gpu}, expected {due} of {low} to {high}")


def _held_now(case: CheckCase, job: str, node: str, gpu: str) -> int | None:
    """Return the share of a GPU that a running job holds before the round."""
    here = (part.gpus.get(gpu) for part in case.directory.running[job].assignments if part.node == node)
    return next(here, None)


def _range(demand: Demand) -> Range:
    return demand.gpu_milli, demand.gpu_milli if demand.gpu_milli_limit is None else demand.gpu_milli_limit


def _ranges(case: CheckCase, node: str) -> dict[str, dict[str, Range]]:
    """Return request and limit of every job on every GPU of a node."""
    out: dict[str, dict[str, Range]] = {}
    for held, assignment in case.on_node[node]:
        mine = _range(held.option.demand)
        for gpu in assignment.gpus:
            out.setdefault(gpu, {})[held.job.id] = mine
    return out


def _granted(ranges: dict[str, Range]) -> dict[str, int]:
    """
    Divide a GPU: the requests, and the rest in proportion to limit - request, rounded down and capped by it.

    Then one thousandth each, in order of the ids, to jobs below their limits, until the rest is used up.
    """
    rest = 1000 - sum(low for low, _ in ranges.values())
    wanted = sum(high - low for low, high in ranges.values())
    out: dict[str, int] = {}
    for job, (low, high) in ranges.items():
        part = 0 if rest <= 0 or wanted == 0 else (high - low) * rest // wanted
        out[job] = min(high, low + part)
    over = max(0, rest) - sum(out[job] - low for job, (low, _) in ranges.items())
    for job in sorted(ranges):
        if over > 0 and out[job] < ranges[job][1]:
            out[job] += 1
            over -= 1
    return out
