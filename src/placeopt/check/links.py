"""Does the network carry the load of the jobs that are spread over nodes?"""

from collections.abc import Callable

from placeopt.check.case import Case, Held, names


def check_links(case: Case) -> None:
    """
    Load of every machine's and every domain's uplink, by the hose model.

    A job with k workers, k_in of them below an uplink, loads it with min(k_in, k - k_in) x its bandwidth per worker.
    GPU jobs and CPU jobs each have their usable part of an uplink; an uplink without a stated capacity is no limit.
    """
    uplinks = {domain.id: domain.uplink_mbps for domain in case.instance.cluster.domains}
    gpu_jobs: dict[tuple[str, str], list[tuple[str, int]]] = {}
    cpu_jobs: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for held in case.held:
        if len(held.placement.assignments) > 1 and held.option.demand.network_bandwidth_mbps:
            _add_job(case, held, gpu_jobs if held.option.demand.gpus else cpu_jobs)

    def capacity(place: tuple[str, str]) -> int | None:
        kind, name = place
        return case.machine_of[name].network_bandwidth_mbps if kind == "node" else uplinks[name]

    _check_group(case, gpu_jobs, capacity, case.policy.usable.network_gpu_jobs_percent, "GPU")
    _check_group(case, cpu_jobs, capacity, case.policy.usable.network_cpu_jobs_percent, "CPU")


def _add_job(case: Case, held: Held, loads: dict[tuple[str, str], list[tuple[str, int]]]) -> None:
    inside: dict[tuple[str, str], int] = {}
    total = 0
    for assignment in held.placement.assignments:
        workers = len(assignment.workers)
        total += workers
        if assignment.node in case.nodes:
            places = [("node", assignment.node)]
            places += [("domain", domain) for domain in case.domains_of(assignment.node).values()]
            for place in places:
                inside[place] = inside.get(place, 0) + workers
    for place, count in inside.items():
        crossing = min(count, total - count)
        if crossing:
            load = crossing * held.option.demand.network_bandwidth_mbps
            loads.setdefault(place, []).append((held.job.id, load))


def _check_group(
    case: Case,
    loads: dict[tuple[str, str], list[tuple[str, int]]],
    capacity_of: Callable[[tuple[str, str]], int | None],
    percent: int,
    group: str,
) -> None:
    for place, entries in loads.items():
        capacity = capacity_of(place)
        load = sum(part for _, part in entries)
        if capacity is not None and load * 100 > percent * capacity:
            kind, name = place
            case.add(
                "uplink",
                f"{kind} {name!r} uplink",
                f"{load} of {percent} % of {capacity} MB/s held by {group} {names([job for job, _ in entries])}",
            )
