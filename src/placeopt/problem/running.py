"""Placements as files state them, in indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from placeopt.errors import BadInput
from placeopt.model import Placement as PlacementRecord
from placeopt.problem.arrays import Placement
from placeopt.problem.problem import Problem
from placeopt.problem.tree import member_placements


def placed_in(
    problem: Problem, placements: Iterable[PlacementRecord], running: Mapping[int, PlacementRecord] | None = None
) -> dict[int, Placement]:
    """
    Return placements of the file's form in indices, by job; those of a tree member by member.

    ``running``: Of the members of trees that run, which keep their workers; None: none.

    Raises ``BadInput`` if a placement is of no job, or no option of its job, or on a node or GPU that is not there.
    """
    jobs = {job_id: j for j, job_id in enumerate(problem.job_ids)}
    nodes = {node_id: n for n, node_id in enumerate(problem.node_ids)}
    trees = {tree.job: tree for tree in problem.trees}
    found: dict[int, Placement] = {}
    for placement in placements:
        tree = trees.get(placement.job)
        if tree is None and placement.job not in jobs:
            raise BadInput(f"placements: no job {placement.job!r} in the instance")
        parts = {jobs[placement.job]: placement} if tree is None else member_placements(tree, placement, running or {})
        found.update({job: running_placement(part, problem, job, nodes) for job, part in parts.items()})
    return found


def running_placement(running: PlacementRecord, problem: Problem, job: int, nodes: dict[str, int]) -> Placement:
    """
    Return a placement of the file's form in indices; ``nodes`` maps node ids to numbers.

    Raises ``BadInput`` if it does not agree with an option of the job, or names a GPU that the node lacks.
    """
    workers: list[tuple[int, int, list[int]]] = []  # rank, node, GPUs
    first_slot: dict[int, int] = {}
    for assignment in running.assignments:
        n = nodes.get(assignment.node, -1)
        if n < 0:
            raise BadInput(f"running job {running.job!r}: no node {assignment.node!r} in the cluster")
        start, end = problem.first_gpu[n], problem.first_gpu[n + 1]
        for worker in assignment.workers:
            gpus = []
            for index in worker.gpus:
                if start + index >= end or str(index) not in assignment.gpus:
                    raise BadInput(
                        f"running job {running.job!r} on node {assignment.node!r}: worker {worker.rank} holds GPU "
                        f"{index}, which the node lacks or 'gpus' does not list; the node has GPUs 0..{end - start - 1}"
                    )
                gpus.append(start + index)
                if assignment.starts:
                    first_slot[start + index] = assignment.starts.get(str(index), 0)
            workers.append((worker.rank, n, gpus))
    numbers, key = problem.options.numbers, (int(problem.job_class[job]), running.option, len(workers))
    flavor = int(problem.node_flavor[min(workers)[1]]) if workers else -1
    option = numbers.get((*key, flavor), numbers.get((*key, -1)))
    if option is not None:
        each = problem.options.shapes[option][2]
        if any([len(gpus) != each for _, _, gpus in workers]):  # noqa: C419 - half the time of a generator
            raise BadInput(
                f"running job {running.job!r}: option {running.option!r} gives each worker {each} GPUs, "
                "but a running worker holds another number; make 'running' agree with the option"
            )
        if len(workers) == 1:
            _, n, gpus = workers[0]
            return Placement(
                option, (n,), tuple(gpus), starts=tuple(first_slot.get(gpu, 0) for gpu in gpus if first_slot)
            )
        workers.sort()
        held = tuple([gpu for _, _, gpus in workers for gpu in gpus])
        starts = tuple([first_slot.get(gpu, 0) for gpu in held if first_slot])
        return Placement(option, tuple([n for _, n, _ in workers]), held, starts=starts)
    raise BadInput(
        f"running job {running.job!r}: runs {len(workers)} workers, which option {running.option!r} does not allow "
        "(or the option's utility is below the job's minimum); make 'running' agree with the job's options"
    )
