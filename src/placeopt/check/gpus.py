"""Does each GPU hold no more than it can?"""

from placeopt.check.case import Case, names
from placeopt.model import Gpu


def check_gpus(case: Case) -> None:
    """Share, number of jobs and memory of every GPU, by the share mode of the policy."""
    for node, entries in case.on_node.items():
        gpus = case.machine_of[node].gpus
        on_gpu: dict[int, list[tuple[str, int, int]]] = {}
        for held, assignment in entries:
            memory = held.option.demand.gpu_memory_mib
            for gpu, milli in assignment.gpus.items():
                on_gpu.setdefault(int(gpu), []).append((held.job.id, milli, memory))
        for index, holders in on_gpu.items():
            if index < len(gpus):
                _check_gpu(case, f"node {node!r} gpu {index}", gpus[index], holders)


def _check_gpu(case: Case, where: str, gpu: Gpu, holders: list[tuple[str, int, int]]) -> None:
    policy = case.policy
    held_by = f"held by {names([job for job, _, _ in holders])}" if len(holders) > 1 else ""
    if policy.share_mode == "exclusive":
        if len(holders) > 1:
            case.add("gpu_exclusive", where, f"{len(holders)} jobs on an exclusive GPU, {held_by}")
    elif policy.jobs_per_gpu_max is not None and len(holders) > policy.jobs_per_gpu_max:
        case.add("gpu_jobs", where, f"{len(holders)} of {policy.jobs_per_gpu_max} jobs, {held_by}")
    if policy.share_mode == "fraction":
        milli = sum(share for _, share, _ in holders)
        if milli > 1000:
            case.add("gpu_share", where, f"{milli} of 1000 milli {held_by}")
    memory = sum(need for _, _, need in holders)
    if memory > gpu.memory_mib:
        by = names([job for job, _, need in holders if need])
        case.add("gpu_memory", where, f"{memory} of {gpu.memory_mib} MiB held by {by}")
