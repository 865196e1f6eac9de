"""Running jobs, which hold a part of the cluster when the round begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.model import Assignment, Machine, Running, WorkerGpus

Columns = dict[str, list[Any]]
"""Column name of ``placeopt.documents.columns`` -> one value per job; all of the same length."""

BUSY_SHARE = 0.35
"""Share of the GPUs that running jobs hold, in GPU-milli; never more, and less where the draw does not fit."""

USED_NODES_SHARE = 0.6
"""
Share of the nodes, chosen at random, that running jobs may use; the others are empty. Spread over all nodes, running
jobs would leave hardly any whole node of eight GPUs free, and no gang could start. Ours.
"""

TRIES = 30


@dataclass
class _Room:
    """Free resources of one node, with the order in which its GPUs are used."""

    node: str
    order: list[int]
    gpu_milli: list[int]
    cpu_millicores: int
    memory_mib: int


def busy(
    rng: np.random.Generator,
    machine: Machine,
    nodes: Sequence[str],
    draw: Callable[[np.random.Generator, int], Columns],
    share: float = BUSY_SHARE,
) -> tuple[Columns, list[Running]]:
    """
    Draw running jobs and place them at random, without over-allocation; ``machine`` is the type of all ``nodes``.

    ``draw`` returns the columns of a number of jobs; jobs of several workers are discarded, running jobs have one.
    Largest jobs are placed first, up to the ``share`` of the GPUs; each goes to the first of up to 30 random nodes with
    room, or is dropped. Shares go to the GPU that they fill best, whole GPUs are used in a random order per node.
    Returns the running jobs' columns, ``id`` (``run-...``) included, and their placements in the same order.
    """
    budget = int(share * 1000 * len(nodes) * len(machine.gpus))
    drawn = draw(rng, max(3 * budget // 1000, 16) if budget else 0)
    sizes = [gpus * milli for gpus, milli in zip(drawn["gpus"], drawn["gpu_milli"], strict=True)]
    chosen = []
    for job, size in enumerate(sizes):
        if drawn["workers"][job] == 1 and size <= budget:
            chosen.append(job)
            budget -= size
    chosen.sort(key=lambda job: -sizes[job])
    rooms = _rooms(rng, machine, nodes)
    tries = rng.integers(0, len(rooms), (len(chosen), TRIES)).tolist()
    taken: list[int] = []
    running: list[Running] = []
    for job, row in zip(chosen, tries, strict=True):
        for i in row:
            gpus = _fit(rooms[i], drawn, job)
            if gpus is not None:
                running.append(_placed(rooms[i], drawn, job, gpus, f"run-{len(taken):06d}"))
                taken.append(job)
                break
    columns = {name: [values[job] for job in taken] for name, values in drawn.items()}
    return {"id": [entry.job for entry in running], **columns}, running


def _rooms(rng: np.random.Generator, machine: Machine, nodes: Sequence[str]) -> list[_Room]:
    used = rng.permutation(len(nodes))[: max(1, round(USED_NODES_SHARE * len(nodes)))]
    orders = rng.permuted(np.tile(np.arange(len(machine.gpus)), (used.size, 1)), axis=1)
    return [
        _Room(nodes[node], order, [1000] * len(machine.gpus), machine.cpu_millicores, machine.memory_mib)
        for node, order in zip(used.tolist(), orders.tolist(), strict=True)
    ]


def _fit(room: _Room, drawn: Columns, job: int) -> list[int] | None:
    """Return GPUs of the node for the job, or None."""
    if drawn["cpu_millicores"][job] > room.cpu_millicores or drawn["memory_mib"][job] > room.memory_mib:
        return None
    milli, count = drawn["gpu_milli"][job], drawn["gpus"][job]
    free = [gpu for gpu in room.order if room.gpu_milli[gpu] >= milli]
    if milli < 1000 and free:
        return [min(free, key=lambda gpu: room.gpu_milli[gpu])]
    return free[:count] if len(free) >= count else None


def _placed(room: _Room, drawn: Columns, job: int, gpus: list[int], name: str) -> Running:
    milli, cpu, memory = drawn["gpu_milli"][job], drawn["cpu_millicores"][job], drawn["memory_mib"][job]
    for gpu in gpus:
        room.gpu_milli[gpu] -= milli
    room.cpu_millicores -= cpu
    room.memory_mib -= memory
    assignment = Assignment(
        node=room.node,
        gpus={str(gpu): milli for gpu in sorted(gpus)},
        cpu_millicores=cpu,
        memory_mib=memory,
        workers=(WorkerGpus(rank=0, gpus=tuple(sorted(gpus))),),
    )
    return Running(job=name, option="default", assignments=(assignment,))
