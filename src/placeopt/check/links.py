"""Does the network carry the load of the jobs that are spread over nodes?"""

from placeopt.check.case import CheckCase, Directory, Place, PlacedJob, names


def check_links(case: CheckCase) -> None:
    """
    Load of every machine's and every domain's uplink, by the hose model.

    A job with k workers, k_in of them below an uplink, loads it with min(k_in, k - k_in) x its bandwidth per worker.
    GPU jobs and CPU jobs each have their usable part of an uplink; an uplink without a stated capacity is no limit.
    """
    gpu_jobs: dict[Place, list[tuple[str, int]]] = {}
    cpu_jobs: dict[Place, list[tuple[str, int]]] = {}
    for held in case.held:
        if len(held.placement.assignments) == 1:
            continue  # nothing crosses; by far the most are so
        loads = gpu_jobs if held.option.demand.gpus else cpu_jobs
        for place, load in crossing_loads(case.directory, held):
            loads.setdefault(place, []).append((held.job.id, load))
    usable = case.policy.usable
    _check_group(case, gpu_jobs, case.elsewhere.gpu_links, usable.network_gpu_jobs_percent, "GPU")
    _check_group(case, cpu_jobs, case.elsewhere.cpu_links, usable.network_cpu_jobs_percent, "CPU")


def crossing_loads(directory: Directory, held: PlacedJob) -> list[tuple[Place, int]]:
    """Return the uplinks that a job loads, and with how many MB/s each."""
    mbps = held.option.demand.network_bandwidth_mbps
    if not mbps or len(held.placement.assignments) == 1:
        return []
    inside: dict[Place, int] = {}
    total = 0
    for assignment in held.placement.assignments:
        workers = len(assignment.workers)
        total += workers
        if assignment.node in directory.nodes:
            places = [("node", assignment.node)]
            places += [("domain", domain) for domain in directory.domains_of(assignment.node).values()]
            for place in places:
                inside[place] = inside.get(place, 0) + workers
    return [(place, min(count, total - count) * mbps) for place, count in inside.items() if count < total]


def _check_group(
    case: CheckCase,
    loads: dict[Place, list[tuple[str, int]]],
    elsewhere: dict[Place, int],
    percent: int,
    group: str,
) -> None:
    for place, entries in loads.items():
        kind, name = place
        capacity = case.machine_of[name].network_bandwidth_mbps if kind == "node" else case.directory.uplinks[name]
        others = elsewhere.get(place, 0)
        load = sum(part for _, part in entries) + others
        if capacity is not None and load * 100 > percent * capacity:
            holders = names([job for job, _ in entries]) + (f" and by others ({others} MB/s)" if others else "")
            case.add(
                "uplink",
                f"{kind} {name!r} uplink",
                f"{load} of {percent} % of {capacity} MB/s held by {group} {holders}",
                by=[job for job, _ in entries],
                node=name if kind == "node" else None,
            )
