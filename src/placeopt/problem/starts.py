"""Starts of shares on GPUs with profiles, which are chosen last, when placements are written."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.model import Placement as PlacementRecord
from placeopt.model.base import trusted
from placeopt.problem.arrays import Allocation
from placeopt.problem.gpu_slots import number_of, packing, slots_of
from placeopt.problem.problem import Problem
from placeopt.problem.state import slot_loads


def with_starts(
    problem: Problem, allocation: Allocation, placements: Sequence[PlacementRecord]
) -> list[PlacementRecord]:
    """Return the placements of an allocation, one of each placed job, with the first slots of their shares."""
    loads: dict[int, int] = {}
    waiting: dict[tuple[int, int], list[int]] = {}  # GPU, profile -> jobs whose share has no start yet
    starts: dict[int, dict[tuple[str, str], int]] = {}

    def put(job: int, gpu: int, start: int) -> None:
        node = int(problem.gpu_node[gpu])
        starts.setdefault(job, {})[problem.node_ids[node], str(gpu - problem.first_gpu[node])] = start

    held = {job: placement for job, placement in enumerate(allocation) if placement is not None}
    for job, placement in held.items():
        for at, (gpu, load) in enumerate(slot_loads(problem, placement)):
            loads[gpu] = loads.get(gpu, 0) + load
            if not placement.starts:
                geometry = problem.type_geometry[problem.gpu_type[gpu]]
                number = number_of(geometry, problem.options.gpu_profile[placement.option])
                waiting.setdefault((gpu, number), []).append(job)
            elif problem.running.get(job) is not placement:
                put(job, gpu, placement.starts[at])
    for (gpu, number), jobs in waiting.items():
        packed = packing(slots_of(problem.type_geometry[problem.gpu_type[gpu]]), loads[gpu])
        for job, start in zip(jobs, () if packed is None else packed[number], strict=packed is not None):
            put(job, gpu, start)
    return [
        _with(record, starts[job]) if job in starts else record for job, record in zip(held, placements, strict=True)
    ]


def _with(placement: PlacementRecord, starts: dict[tuple[str, str], int]) -> PlacementRecord:
    """Return a placement whose shares have the starts that are given by node and GPU."""
    assignments = []
    for a in placement.assignments:
        of_node = {gpu: starts[a.node, gpu] for gpu in a.gpus if (a.node, gpu) in starts}
        assignments.append(trusted(type(a), {**dict(a), "starts": of_node}))
    return trusted(type(placement), {**dict(placement), "assignments": tuple(assignments)})
