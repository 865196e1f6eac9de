"""A placement as files have it, in indices."""

from __future__ import annotations

from placeopt.errors import BadInput
from placeopt.model import Placement as PlacementRecord
from placeopt.problem.arrays import Problem
from placeopt.problem.placement import Placement


def running_placement(running: PlacementRecord, problem: Problem, job: int, nodes: dict[str, int]) -> Placement:
    """
    Return a placement of the file's form in indices; ``nodes`` maps node ids to numbers.

    Raises
    ------
    BadInput
        If it does not agree with an option of the job, or names a GPU that the node lacks.
    """
    workers: list[tuple[int, int, list[int], list[int]]] = []  # rank, node, GPUs, shares
    for assignment in running.assignments:
        n = nodes[assignment.node]
        start, end = problem.first_gpu[n], problem.first_gpu[n + 1]
        for worker in assignment.workers:
            for index in worker.gpus:
                if start + index >= end or str(index) not in assignment.gpus:
                    raise BadInput(
                        f"running job {running.job!r} on node {assignment.node!r}: worker {worker.rank} holds GPU "
                        f"{index}, which the node lacks or 'gpus' does not list; the node has GPUs 0..{end - start - 1}"
                    )
            gpus = [start + index for index in worker.gpus]
            workers.append((worker.rank, n, gpus, [assignment.gpus[str(index)] for index in worker.gpus]))
    workers.sort()
    held = tuple(gpu for _, _, gpus, _ in workers for gpu in gpus)
    shares = tuple(share for _, _, _, worker_shares in workers for share in worker_shares)
    for o in problem.options_of(job):
        name, count, each, milli = problem.options.shapes[o]
        if name == running.option and count == len(workers):
            if any(len(gpus) != each for _, _, gpus, _ in workers):
                raise BadInput(
                    f"running job {running.job!r}: option {running.option!r} gives each worker {each} GPUs, "
                    "but a running worker holds another number; make 'running' agree with the option"
                )
            same = all(share == milli for share in shares)
            return Placement(o, tuple(n for _, n, _, _ in workers), held, None if same else shares)
    raise BadInput(
        f"running job {running.job!r}: runs {len(workers)} workers, which option {running.option!r} does not allow "
        "(or the option's utility is below the job's minimum); make 'running' agree with the job's options"
    )
