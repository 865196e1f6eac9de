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
    nodes = {assignment.node for held in flexible for assignment in held.placement.assignments}
    on_gpu: dict[tuple[str, str], dict[str, Range]] = {}  # node and GPU -> job -> range
    for node in nodes & case.on_node.keys() if flexible else ():
        for held, assignment in case.on_node[node]:
            for gpu in assignment.gpus:
                on_gpu.setdefault((node, gpu), {})[held.job.id] = _range(held.option.demand)
    for held in flexible:
        name, (low, high) = held.job.id, _range(held.option.demand)
        for assignment in held.placement.assignments if name in placed else ():
            node, runs = assignment.node, case.directory.running.get(name) if case.stays(name) else None
            for gpu, milli in assignment.gpus.items() if node in case.on_node else ():
                due = _granted(on_gpu[node, gpu])[name] if more else low
                now = (
                    [] if more or runs is None else [one.gpus.get(gpu) for one in runs.assignments if one.node == node]
                )
                if low <= milli <= high and milli != due and milli not in now[:1]:
                    where = f"job {name!r} on node {node!r}"
                    case.add("gpu_grant", where, f"{milli} milli of GPU {gpu}, expected {due} of {low} to {high}")


def _range(demand: Demand) -> Range:
    return demand.gpu_milli, demand.gpu_milli if demand.gpu_milli_limit is None else demand.gpu_milli_limit


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
