"""Does each GPU, node, uplink and queue hold no more than it can, and each job what is granted to it?"""

from placeopt.check.case import CheckCase, Place, gpu_number, names
from placeopt.check.directory import Directory, PlacedJob
from placeopt.model import Assignment, Demand
from placeopt.model.policy import Queue

WHOLE = 1000
"""Thousandths of a GPU."""


def check_gpus(case: CheckCase) -> None:
    """
    Requested share, number of jobs and memory of every GPU, by the share mode of the policy.

    Running jobs may exceed number and memory and stay, but not the whole of a GPU: no GPU can hold that.
    """
    policy = case.policy
    jobs_max = 1 if policy.share_mode == "exclusive" else policy.jobs_per_gpu_max
    milli_max = WHOLE if policy.share_mode == "fraction" else None
    for node, entries in case.on_node.items():
        jobs: dict[str, int] = {}
        milli: dict[str, int] = {}
        memory: dict[str, int] = {}
        for held, assignment in entries:
            request = held.option.demand.gpu_milli
            for gpu in assignment.gpus:
                milli[gpu] = milli.get(gpu, 0) + request
            need = held.option.demand.gpu_memory_mib
            if need:
                for gpu in assignment.gpus:
                    memory[gpu] = memory.get(gpu, 0) + need
            if jobs_max is not None:
                for gpu in assignment.gpus:
                    jobs[gpu] = jobs.get(gpu, 0) + 1
        if not memory and not jobs and (milli_max is None or max(milli.values(), default=0) <= milli_max):
            continue
        gpus = case.machine_of[node].gpus
        for gpu in milli:
            number = gpu_number(gpu)
            if not 0 <= number < len(gpus):
                continue  # told by rule `gpu_indexes`
            capacity = gpus[number].memory_mib
            too_many = jobs_max is not None and jobs[gpu] > jobs_max
            too_much = milli_max is not None and milli[gpu] > milli_max
            if not (too_many or too_much or memory.get(gpu, 0) > capacity):
                continue
            where = f"node {node!r} gpu {gpu}"
            holders = [held for held, assignment in entries if gpu in assignment.gpus]
            ids = [held.job.id for held in holders]
            if too_many:
                exclusive = policy.share_mode == "exclusive"
                by = None if exclusive and milli[gpu] > WHOLE else ids
                rule = "gpu_exclusive" if exclusive else "gpu_jobs"
                case.add(rule, where, f"{jobs[gpu]} of {jobs_max} jobs: {names(ids)}", by=by, node=node)
            if too_much:
                case.add("gpu_share", where, f"{milli[gpu]} of {milli_max} milli held by {names(ids)}")
            if memory.get(gpu, 0) > capacity:
                by = [held.job.id for held in holders if held.option.demand.gpu_memory_mib]
                case.add("gpu_memory", where, f"{memory[gpu]} of {capacity} MiB held by {names(ids)}", by=by, node=node)


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


def check_nodes(case: CheckCase) -> None:
    """CPU, memory, named resources, and the usable part of memory and PCIe bandwidth of every node."""
    usable = case.policy.usable
    for node, entries in case.on_node.items():
        cpu = memory = memory_bandwidth = pcie = 0
        named: dict[str, int] = {}
        for held, assignment in entries:
            workers, demand = len(assignment.workers), held.option.demand
            # What the workers need and what the plan states are the same, or rule `amounts` is broken.
            needed = workers * demand.cpu_millicores
            cpu += needed if needed > assignment.cpu_millicores else assignment.cpu_millicores
            needed = workers * demand.memory_mib
            memory += needed if needed > assignment.memory_mib else assignment.memory_mib
            memory_bandwidth += workers * demand.memory_bandwidth_mbps
            pcie += workers * demand.pcie_bandwidth_mbps
            for name, amount in demand.resources.items():
                named[name] = named.get(name, 0) + workers * amount
        machine = case.machine_of[node]
        for name, amount in named.items():
            if amount > machine.resources.get(name, 0):
                holders = [held.job.id for held, _ in entries if held.option.demand.resources.get(name, 0)]
                what = f"{amount} of {machine.resources.get(name, 0)} {name} held by {names(holders)}"
                case.add("resource", f"node {node!r}", what, by=holders, node=node)
        if cpu <= machine.cpu_millicores and memory <= machine.memory_mib and not memory_bandwidth and not pcie:
            continue
        for rule, unit, load, capacity, percent in (
            ("cpu", "millicores", cpu, machine.cpu_millicores, 100),
            ("memory", "MiB", memory, machine.memory_mib, 100),
            (
                "memory_bandwidth",
                "MB/s of memory bandwidth",
                memory_bandwidth,
                machine.memory_bandwidth_mbps,
                usable.memory_bandwidth_percent,
            ),
            (
                "pcie_bandwidth",
                "MB/s of PCIe bandwidth",
                pcie,
                machine.pcie_bandwidth_mbps,
                usable.pcie_bandwidth_percent,
            ),
        ):
            if capacity is not None and load * 100 > percent * capacity:
                part = "" if percent == 100 else f"{percent} % of "
                holders = [held.job.id for held, assignment in entries if _takes(rule, held, assignment)]
                what = f"{load} of {part}{capacity} {unit} held by {names(holders)}"
                case.add(rule, f"node {node!r}", what, by=holders, node=node)


def _takes(rule: str, held: PlacedJob, assignment: Assignment) -> bool:
    """Return whether a job uses the resource of the rule."""
    demand = held.option.demand
    if rule == "cpu":
        return max(demand.cpu_millicores, assignment.cpu_millicores) > 0
    if rule == "memory":
        return max(demand.memory_mib, assignment.memory_mib) > 0
    return (demand.memory_bandwidth_mbps if rule == "memory_bandwidth" else demand.pcie_bandwidth_mbps) > 0


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
            continue  # nothing crosses
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


RESOURCES = ("gpu_milli", "cpu_millicores", "memory_mib")


def check_queues(case: CheckCase) -> None:
    """Quota plus borrowing, and dominant share plus borrowing, of every queue over all jobs placed."""
    if not case.policy.queues:
        return
    before = case.elsewhere.queues
    used = {queue.id: list(before.get(queue.id, (0, 0, 0))) for queue in case.policy.queues}
    for held in case.held:
        add_use(used, held, 1)
    for queue in case.policy.queues:
        _check_queue(case, queue, used[queue.id], case.directory.total)


def add_use(used: dict[str, list[int]], held: PlacedJob, sign: int) -> None:
    """Add (``sign`` 1) or subtract (-1) what a job holds to the use of its queue, if ``used`` has the queue."""
    amounts = used.get(held.job.queue) if held.job.queue is not None else None
    if amounts is not None:
        for assignment in held.placement.assignments:
            for r, amount in enumerate(_amounts(assignment, held.option.demand)):
                amounts[r] += sign * amount


def _amounts(assignment: Assignment, demand: Demand) -> tuple[int, int, int]:
    """Return the amounts held; of GPUs requests count, since what is granted above them is free for other jobs."""
    return len(assignment.gpus) * demand.gpu_milli, assignment.cpu_millicores, assignment.memory_mib


def _holders(case: CheckCase, queue: Queue, r: int) -> list[str]:
    """Jobs of the queue that hold some of a resource."""
    return [
        held.job.id
        for held in case.held
        if held.job.queue == queue.id
        and any(_amounts(assignment, held.option.demand)[r] for assignment in held.placement.assignments)
    ]


def _check_queue(case: CheckCase, queue: Queue, used: list[int], total: list[int]) -> None:
    where = f"queue {queue.id!r}"
    for r, resource in enumerate(RESOURCES):
        quota: int | None = getattr(queue.quota, resource)
        borrow: int = getattr(queue.borrow, resource) or 0
        if quota is not None and used[r] > quota + borrow:
            what = f"{used[r]} {resource}, quota {quota} and {borrow} borrowed"
            case.add("queue_quota", where, what, by=_holders(case, queue, r))
        if queue.dominant_share_percent is not None:
            percent = queue.dominant_share_percent + queue.borrow_percent
            if used[r] * 100 > percent * total[r]:
                what = f"{used[r]} of {percent} % of the cluster's {total[r]} {resource}"
                case.add("queue_share", where, what, by=_holders(case, queue, r))
