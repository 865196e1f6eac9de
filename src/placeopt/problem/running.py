"""What runs when a round begins: stand-ins for nodes and GPUs that are not listed, and placements in indices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from placeopt.errors import BadInput
from placeopt.model import Instance, Machine, Node
from placeopt.model import Placement as PlacementRecord
from placeopt.model.machine import Gpu
from placeopt.problem.arrays import Placement
from placeopt.problem.problem import Problem
from placeopt.problem.tree_placements import member_placements

LOST_MODEL = "lost"
"""Model of a GPU that is not listed; its type is one of its own, which no job may start on."""


@dataclass(frozen=True)
class Lost:
    """What runs where the cluster lists nothing."""

    instance: Instance
    """
    The round with a drained stand-in for every lost node, and one for every lost GPU, after those of its node. A node
    that is there but lost GPUs has a machine type of its own.
    """
    gpu_index: Mapping[str, Mapping[int, int]]  # id of the node -> index of a lost GPU in the file -> in the stand-in
    listed: Mapping[str, int]  # id of a stand-in's machine type -> number of its GPUs that the cluster lists


def find_lost(instance: Instance) -> Lost | None:
    """
    Return the round with stand-ins for what running jobs hold and the cluster does not list, None if it lists all.

    A stand-in has just the GPUs that are held, and no CPU or memory: its limits are broken by what runs there, which is
    exempt (``placeopt.check``), and nothing starts there. Its distance to other GPUs is the default.
    """
    missing = _missing(instance)
    if not missing:
        return None
    machines = dict(instance.cluster.machine_types)
    there = {node.id: n for n, node in enumerate(instance.cluster.nodes)}
    nodes = list(instance.cluster.nodes)
    made: dict[tuple[str | None, int], str] = {}  # machine, lost GPUs -> machine type of the stand-in
    listed: dict[str, int] = {}
    gpu_index: dict[str, dict[int, int]] = {}
    for name, indices in missing.items():
        node = nodes[there[name]] if name in there else None
        machine = None if node is None else machines[node.machine]
        key = (None if machine is None else machine.id, len(indices))
        if key not in made:
            made[key] = _free_name(f"lost-{key[0] or 'node'}-{key[1]}", machines)
            machines[made[key]] = _stand_in(made[key], machine, len(indices))
            listed[made[key]] = 0 if machine is None else len(machine.gpus)
        first = listed[made[key]]
        gpu_index[name] = {index: first + i for i, index in enumerate(sorted(indices))}
        if node is None:
            nodes.append(Node(id=name, machine=made[key], drained=True))
        else:
            nodes[there[name]] = node.model_copy(update={"machine": made[key]})
    cluster = instance.cluster.model_copy(update={"machines": tuple(machines.values()), "nodes": tuple(nodes)})
    return Lost(instance.model_copy(update={"cluster": cluster}), gpu_index, listed)


def _missing(instance: Instance) -> dict[str, set[int]]:
    """Return the GPUs that jobs hold and the cluster does not list, by node; with none for a node without GPUs."""
    listed = instance.cluster.gpus_by_node
    missing: dict[str, set[int]] = {}
    for running in instance.running:
        for assignment in running.assignments:
            size = listed.get(assignment.node, -1)
            lost = [gpu for gpu in map(int, assignment.gpus) if gpu >= size]
            if lost or size < 0:
                missing.setdefault(assignment.node, set()).update(lost)
    return missing


def _stand_in(name: str, machine: Machine | None, lost: int) -> Machine:
    """Return a machine with ``lost`` GPUs after its own."""
    if machine is None:
        return Machine(id=name, cpu_millicores=0, memory_mib=0, gpus=(Gpu(model=LOST_MODEL),) * lost)
    update: dict[str, object] = {"id": name, "gpus": (*machine.gpus, *(Gpu(model=LOST_MODEL),) * lost)}
    if machine.gpu_distance_matrix is not None:
        update["gpu_distance_matrix"] = _extended(machine.gpu_distance_matrix, lost)
    return machine.model_copy(update=update)


def _extended(matrix: tuple[tuple[int, ...], ...], more: int) -> tuple[tuple[int, ...], ...]:
    """Return a distance matrix with more GPUs, each as far from every other as any two of the matrix are."""
    far = max((max(row) for row in matrix), default=0)
    size = len(matrix) + more
    rows = [(*row, *[far] * more) for row in matrix]
    rows += [tuple(0 if i == j else far for j in range(size)) for i in range(len(matrix), size)]
    return tuple(rows)


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "-"
    return name


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
        lost, shares = problem.lost_gpu.get(n), assignment.gpus
        for worker in assignment.workers:
            gpus = []
            for index in worker.gpus:
                known = str(index) in shares
                if lost is not None:
                    index = lost.get(index, index)
                if start + index >= end or not known:
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
            return Placement(option, (n,), tuple(gpus), starts=tuple(first_slot[gpu] for gpu in gpus if first_slot))
        workers.sort()
        held = tuple([gpu for _, _, gpus in workers for gpu in gpus])
        starts = tuple([first_slot[gpu] for gpu in held if first_slot])
        return Placement(option, tuple([n for _, n, _ in workers]), held, starts=starts)
    raise BadInput(
        f"running job {running.job!r}: runs {len(workers)} workers, which option {running.option!r} does not allow "
        "(or the option's utility is below the job's minimum); make 'running' agree with the job's options"
    )
