"""Does each GPU hold no more than it can?"""

from placeopt.check.case import CheckCase, gpu_number, names

WHOLE = 1000
"""Thousandths of a GPU."""


def check_gpus(case: CheckCase) -> None:
    """
    Requested share, number of jobs and memory of every GPU, by the share mode of the policy.

    Running jobs may stand beyond the number and the memory, but not beyond the whole of a GPU: nothing can hold that.
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
