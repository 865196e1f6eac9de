"""Starts of shares on GPUs with profiles, which are chosen last, when placements are written."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.model import Placement as PlacementRecord
from placeopt.model.base import trusted
from placeopt.problem.arrays import IntArray, Placement
from placeopt.problem.gpu_slots import number_of, packing, slots_of
from placeopt.problem.problem import Problem
from placeopt.problem.state import slot_loads


def with_starts(
    problem: Problem, placed: Sequence[tuple[PlacementRecord, Placement]], beside: IntArray | None = None
) -> list[PlacementRecord]:
    """
    Return placements of jobs with the first slots of their shares; those that have them are the same records.

    ``beside``: Shape (G,), the load of each GPU by all other jobs; None: there are no others.
    """
    loads: dict[int, int] = {}
    waiting: dict[tuple[int, int], list[int]] = {}  # GPU, profile -> positions whose share has no start yet
    starts: dict[int, dict[tuple[str, str], int]] = {}

    def put(at: int, gpu: int, start: int) -> None:
        node = int(problem.gpu_node[gpu])
        starts.setdefault(at, {})[problem.node_ids[node], str(gpu - problem.first_gpu[node])] = start

    for at, (record, placement) in enumerate(placed):
        is_new = not any(assignment.starts for assignment in record.assignments)
        known = dict(zip(placement.gpus, placement.starts, strict=False))
        for gpu, load in slot_loads(problem, placement):
            loads[gpu] = loads.get(gpu, 0 if beside is None else int(beside[gpu])) + load
            if not known:
                geometry = problem.type_geometry[problem.gpu_type[gpu]]
                number = number_of(geometry, problem.options.gpu_profile[placement.option])
                waiting.setdefault((gpu, number), []).append(at)
            elif is_new:
                put(at, gpu, known[gpu])
    for (gpu, number), shares in waiting.items():
        packed = packing(slots_of(problem.type_geometry[problem.gpu_type[gpu]]), loads[gpu])
        for at, start in zip(shares, () if packed is None else packed[number], strict=packed is not None):
            put(at, gpu, start)
    return [_with(record, starts[at]) if at in starts else record for at, (record, _) in enumerate(placed)]


def _with(placement: PlacementRecord, starts: dict[tuple[str, str], int]) -> PlacementRecord:
    """Return a placement whose shares have the starts that are given by node and GPU."""
    assignments = []
    for a in placement.assignments:
        of_node = {gpu: starts[a.node, gpu] for gpu in a.gpus if (a.node, gpu) in starts}
        assignments.append(trusted(type(a), {**dict(a), "starts": of_node}))
    return trusted(type(placement), {**dict(placement), "assignments": tuple(assignments)})
