"""A placement as files have it, in indices."""

from __future__ import annotations

from placeopt.errors import BadInput
from placeopt.model import Placement as PlacementRecord
from placeopt.problem.placement import Placement
from placeopt.problem.problem import Problem


def running_placement(running: PlacementRecord, problem: Problem, job: int, nodes: dict[str, int]) -> Placement:
    """
    Return a placement of the file's form in indices; ``nodes`` maps node ids to numbers.

    Raises
    ------
    BadInput
        If it does not agree with an option of the job, or names a GPU that the node lacks.
    """
    workers: list[tuple[int, int, list[int]]] = []  # rank, node, GPUs
    for assignment in running.assignments:
        n = nodes.get(assignment.node, -1)
        if n < 0:
            raise BadInput(f"running job {running.job!r}: no node {assignment.node!r} in the cluster")
        start, end = problem.first_gpu[n], problem.first_gpu[n + 1]
        lost = problem.lost_gpu.get(n)
        for worker in assignment.workers:
            gpus = []
            for index in worker.gpus:
                known = str(index) in assignment.gpus
                if lost is not None:
                    index = lost.get(index, index)
                if start + index >= end or not known:
                    raise BadInput(
                        f"running job {running.job!r} on node {assignment.node!r}: worker {worker.rank} holds GPU "
                        f"{index}, which the node lacks or 'gpus' does not list; the node has GPUs 0..{end - start - 1}"
                    )
                gpus.append(start + index)
            workers.append((worker.rank, n, gpus))
    if len(workers) > 1:
        workers.sort()
    held = tuple([gpu for _, _, gpus in workers for gpu in gpus])
    for o in problem.options_of(job):
        name, count, each = problem.options.shapes[o]
        if name == running.option and count == len(workers):
            if any([len(gpus) != each for _, _, gpus in workers]):  # noqa: C419 - half the time of a generator
                raise BadInput(
                    f"running job {running.job!r}: option {running.option!r} gives each worker {each} GPUs, "
                    "but a running worker holds another number; make 'running' agree with the option"
                )
            return Placement(o, tuple([n for _, n, _ in workers]), held)
    raise BadInput(
        f"running job {running.job!r}: runs {len(workers)} workers, which option {running.option!r} does not allow "
        "(or the option's utility is below the job's minimum); make 'running' agree with the job's options"
    )
