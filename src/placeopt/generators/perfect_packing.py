"""The spec ``planted``: jobs are cut from a perfect packing, so the optimum is known at any size."""

from typing import Any

import numpy as np
import numpy.typing as npt

from placeopt.documents.columns import instance_from_columns
from placeopt.errors import BadArgument
from placeopt.generators.shared import NODES_PER_RACK, Size, arrivals, racks, two_socket_machine, value_policy
from placeopt.model import Instance

DECOYS = 0.2
"""Share of the jobs that do not belong to the packing; ours."""
DECOY_PERCENT = 95
"""Value of a decoy relative to a planted job of its size; ours."""
STEP, LEAST = 10, 50
"""Shares of GPUs are multiples of the one and at least the other, in GPU-milli; openb's smallest share is 50."""


def planted(size: Size) -> Instance:
    """
    Jobs cut from a full cluster: where the cuts are found again, no GPU, CPU and memory of any node is left.

    Nodes as in ``uniform``, all free. Four of five jobs are the packing: more of them than GPUs, and random GPUs are
    cut in two again and again; fewer, and GPUs of one node are put together. CPU and memory of a node are cut at random
    points among its jobs. Each is worth its GPU-milli. The other jobs, decoys, have sizes of planted ones with other
    ones' CPU and memory, and are worth 95 % of theirs. Nothing else counts: the optimum is 1000 a GPU.
    """
    rng = size.random()
    count = size.jobs - round(DECOYS * size.jobs)
    if not size.nodes <= count <= size.num_gpus * (1000 // LEAST):
        raise BadArgument(
            f"jobs: {size.jobs}, expected {size.nodes * 5 // 4 + 1} to {size.num_gpus * 1000 // LEAST} with spec "
            "'planted', so that the cluster can be cut into four of five of them"
        )
    node, gpus, milli = _cut(rng, size, count)
    machine = two_socket_machine("planted", size.gpus)
    cpu = _shared(rng, node, machine.cpu_millicores)
    memory = _shared(rng, node, machine.memory_mib)
    worth = gpus * milli
    like = rng.integers(count, size=size.jobs - count)
    other = rng.integers(count, size=size.jobs - count)
    order = rng.permutation(size.jobs)
    columns: dict[str, Any] = {
        "gpus": np.concatenate([gpus, gpus[like]])[order].tolist(),
        "gpu_milli": np.concatenate([milli, milli[like]])[order].tolist(),
        "cpu_millicores": np.concatenate([cpu, cpu[other]])[order].tolist(),
        "memory_mib": np.concatenate([memory, memory[other]])[order].tolist(),
        "value": np.maximum(1, np.concatenate([worth, worth[like] * DECOY_PERCENT // 100]))[order].tolist(),
    }
    times = arrivals(rng, size.jobs)
    return instance_from_columns(
        racks(machine, size.nodes, NODES_PER_RACK),
        {"id": [f"job-{i:06d}" for i in range(size.jobs)], **columns, "arrival_ms": times},
        name=size.title("planted"),
        note=f"{size.note('planted')} Optimum by construction: {1000 * size.num_gpus}.",
        policy=value_policy(),
        now_ms=times[-1] if times else 0,
    )


Ints = npt.NDArray[np.int64]


def _cut(rng: np.random.Generator, size: Size, count: int) -> tuple[Ints, Ints, Ints]:
    """Return node, GPUs and share of each piece of the cluster."""
    node = np.repeat(np.arange(size.nodes, dtype=np.int64), size.gpus).tolist()
    gpus = [1] * len(node)
    milli = [1000] * len(node)
    able = list(range(len(node)))  # pieces that can be cut
    while len(node) < count:
        at = int(rng.integers(len(able)))
        piece = able[at]
        steps = (milli[piece] - 2 * LEAST) // STEP
        part = LEAST + STEP * int(rng.integers(steps + 1))
        node.append(node[piece])
        gpus.append(1)
        milli.append(part)
        milli[piece] -= part
        if part >= 2 * LEAST:
            able.append(len(node) - 1)
        if milli[piece] < 2 * LEAST:
            able[at] = able[-1]
            able.pop()
    while len(node) > count:  # two pieces of one node become one
        surplus, seen, kept = len(node) - count, dict[int, list[int]](), list[list[int]]()
        for i in rng.permutation(len(node)).tolist():
            first = seen.pop(node[i], None)
            if first is not None and surplus:
                first[1] += gpus[i]
                surplus -= 1
            else:
                seen[node[i]] = [node[i], gpus[i]]
                kept.append(seen[node[i]])
        node, gpus = ([piece[side] for piece in kept] for side in (0, 1))
        milli = [1000] * len(node)
    return np.array(node), np.array(gpus), np.array(milli)


def _shared(rng: np.random.Generator, node: Ints, capacity: int) -> Ints:
    """Cut a resource of every node at random among its jobs, in whole units and without a rest."""
    order = np.argsort(node, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(node[order]) > 0])
    weights = rng.exponential(1.0, node.size)[order]
    sums = np.add.reduceat(weights, starts)
    lengths = np.diff(np.r_[starts, node.size])
    running = np.cumsum(weights)
    before = np.repeat(np.r_[0.0, np.cumsum(sums)[:-1]], lengths)
    ends = np.floor(capacity * (running - before) / np.repeat(sums, lengths) + 1e-9).astype(np.int64)
    last = np.r_[starts[1:], node.size] - 1
    ends[last] = capacity
    parts = np.diff(np.r_[0, ends])
    parts[starts] = ends[starts]
    out: Ints = np.empty_like(parts)
    out[order] = parts
    return out
