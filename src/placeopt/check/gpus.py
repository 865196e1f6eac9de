"""Does each GPU hold no more than it can?"""

from placeopt.check.case import Case, Held, names
from placeopt.model import Assignment


def check_gpus(case: Case) -> None:
    """Share, number of jobs and memory of every GPU, by the share mode of the policy."""
    policy = case.policy
    jobs_max = 1 if policy.share_mode == "exclusive" else policy.jobs_per_gpu_max
    milli_max = 1000 if policy.share_mode == "fraction" else None
    for node, entries in case.on_node.items():
        jobs: dict[str, int] = {}
        milli: dict[str, int] = {}
        memory: dict[str, int] = {}
        for held, assignment in entries:
            for gpu, share in assignment.gpus.items():
                milli[gpu] = milli.get(gpu, 0) + share
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
            if int(gpu) >= len(gpus):
                continue  # told by rule `gpu_indexes`
            capacity = gpus[int(gpu)].memory_mib
            too_many = jobs_max is not None and jobs[gpu] > jobs_max
            too_much = milli_max is not None and milli[gpu] > milli_max
            if not (too_many or too_much or memory.get(gpu, 0) > capacity):
                continue
            where = f"node {node!r} gpu {gpu}"
            if too_many:
                rule = "gpu_exclusive" if policy.share_mode == "exclusive" else "gpu_jobs"
                case.add(rule, where, f"{jobs[gpu]} of {jobs_max} jobs: {_holders(entries, gpu)}")
            if too_much:
                case.add("gpu_share", where, f"{milli[gpu]} of {milli_max} milli held by {_holders(entries, gpu)}")
            if memory.get(gpu, 0) > capacity:
                case.add("gpu_memory", where, f"{memory[gpu]} of {capacity} MiB held by {_holders(entries, gpu)}")


def _holders(entries: list[tuple[Held, Assignment]], gpu: str) -> str:
    return names([held.job.id for held, assignment in entries if gpu in assignment.gpus])
