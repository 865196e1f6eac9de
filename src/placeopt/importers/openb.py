"""
Alibaba's cluster-trace-gpu-v2023 ("openb"): a node list and a pod list as CSV files.

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023; the workload of Weng et al., "Beware of
Fragmentation" (USENIX ATC'23). The trace states no sockets, links, GPU memory, bandwidths, communication or
interference, and the reader adds none, so none of them can bind.
"""

import re
from functools import cache
from math import ceil
from pathlib import Path

from pydantic import ValidationError

from placeopt.arguments import checked
from placeopt.documents.faults import validation_fault
from placeopt.errors import BadInput
from placeopt.importers.job_table.read import TableJob, read_jobs
from placeopt.importers.job_table.rows import read_rows
from placeopt.model.base import MAX_GPUS, MAX_NODES
from placeopt.model.cluster import Cluster, Node
from placeopt.model.costs import Weights
from placeopt.model.group import Demand
from placeopt.model.instance import Instance
from placeopt.model.job import Job, JobKind, Option
from placeopt.model.machine import Gpu, Machine
from placeopt.model.policy import Fragmentation, Policy

GPU_MEMORY_MIB = {"T4": 15109, "P100": 16280, "V100M16": 16160, "V100M32": 32510, "A10": 22731}
"""
Memory that NVIDIA's driver reports for these models (16, 16, 16, 32 and 24 GB on the data sheets, less what ECC and the
driver reserve; some MiB differ by driver). G1, G2 and G3 are undisclosed: 0, unknown. No openb pod requests GPU memory,
so the figures only inform.
"""

KIND_BY_QOS: dict[str, JobKind] = {"LS": "inference", "BE": "training"}
"""
Our reading; the trace states no kind: latency-sensitive pods are inference, best-effort pods training. Pods of another
class (Burstable, Guaranteed) or of none count as training, pods without a GPU as ``cpu`` in every class.
"""

OPENB_POLICY = Policy(
    name="openb",
    share_mode="fraction",
    weights=Weights(communication=0, interference=0, fragmentation=1000),
    fragmentation=Fragmentation(level_weights={"node": 1}),
)
"""GPUs are shared; among plans of equal value, the fewest GPUs are stranded on partly used nodes."""

_NODE = re.compile(r"(\S{1,253}) ([0-9]{1,8}) ([0-9]{1,9}) ([0-9]{1,9}) (\S{0,200})")
"""The cells of a node; its GPU model becomes part of the name of a machine type."""
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


@checked
def read_openb(
    nodes_csv: str | Path, pods_csv: str | Path, limit: int | None = None, name: str | None = None
) -> Instance:
    """
    Return a node list and a pod list as a round in which every pod waits and every node is empty.

    Parameters
    ----------
    nodes_csv
        CSV, gzip or not, with the columns ``sn, cpu_milli, memory_mib, gpu, model``, in any order; others are ignored.
        The trace's two node files use the same names for different machines, so do not mix their nodes.
    pods_csv
        A table of jobs with the columns ``openb`` (`placeopt.importers.job_table`). Columns of the GPU model, the class
        and times may be absent, as from the list ``multigpu20``.
    limit
        Take the first ``limit`` pods and a proportionate slice of the nodes, see Notes. All by default.
    name
        Name of the instance; by default that of the pod file, with ``-first-N`` if there is a limit.

    Returns
    -------
    Instance
        One machine type per distinct (model, GPUs, CPU, memory); one job per pod: a single worker of ``num_gpu`` GPUs,
        ``gpu_milli`` of each. A job is worth ``num_gpu * gpu_milli`` GPU-milli, one without a GPU 1. ``arrival_ms`` is
        the creation time, ``now_ms`` the last of them. The policy is ``OPENB_POLICY``.

    Raises
    ------
    BadInput
        If a file lacks a column, or a row of the nodes is malformed or repeats a name. Pods that cannot be read are
        left out, counted in the note.

    Notes
    -----
    The slice of nodes: of N nodes, T = ceil(N * limit / pods) are taken, at least one. Each shape gets its share
    T * n / N, rounded down; the remaining nodes go to the shapes with the largest remainders, ties to the shape that
    comes first in the file. Of a shape's n nodes, the k taken are those at positions floor(i * n / k), i = 0 .. k - 1.
    This keeps the mix of GPUs, and the same limit always gives the same nodes.

    Deletion and scheduling times are left out: they state when the trace's own cluster ran a pod, not what it needs.
    """
    nodes = _read_nodes(nodes_csv)
    found, notes = read_jobs(pods_csv, "openb", waiting=True)
    title = name if name is not None else Path(pods_csv).name.removesuffix(".gz").removesuffix(".csv")
    if limit is not None:
        if limit < 1:
            raise BadInput(f"limit: {limit}, expected at least 1 pod")
        nodes = _slice(nodes, limit, len(found))
        found = found[:limit]
        title = title if name is not None else f"{title}-first-{limit}"
    told = (
        "Alibaba cluster-trace-gpu-v2023 (openb), https://github.com/alibaba/clusterdata: "
        f"nodes of {Path(nodes_csv).name}, pods of {Path(pods_csv).name}. "
        f"{len(found)} pods, {len(nodes)} nodes, {sum(len(machine.gpus) for machine in nodes.values())} GPUs."
    )
    try:
        return Instance(
            name=title,
            now_ms=max(pod.submit_ms for pod in found),
            note=told,
            cluster=Cluster(
                machines=tuple(sorted({id(one): one for one in nodes.values()}.values(), key=lambda one: one.id)),
                nodes=tuple(Node(id=name, machine=machine.id) for name, machine in nodes.items()),
            ),
            jobs=_jobs(found),
            policy=OPENB_POLICY,
            reading=notes.records(),
        )
    except ValidationError as error:  # models that differ in case only, a name that is too long
        raise validation_fault(Instance, error, f"{nodes_csv}, {pods_csv}") from None


def _machine(model: str, gpus: int, cpu_millicores: int, memory_mib: int) -> Machine:
    cpu = cpu_millicores
    cores = f"{cpu // 1000}c" if cpu % 1000 == 0 else f"{cpu}mc"
    kind = f"{model.lower()}-{gpus}gpu" if gpus else "cpu"
    gpu = Gpu(model=model, memory_mib=GPU_MEMORY_MIB.get(model, 0)) if gpus else None
    return Machine(
        id=f"{kind}-{cores}-{memory_mib}m",
        cpu_millicores=cpu,
        memory_mib=memory_mib,
        gpus=(gpu,) * gpus if gpu else (),
        source="openb",
    )


def _read_nodes(path: str | Path) -> dict[str, Machine]:
    """Return the machine type of each node; equal types are one object."""
    table = read_rows(path, NODE_COLUMNS)
    columns = [table.column(name) for name in NODE_COLUMNS]
    machine_of = cache(_machine)
    nodes: dict[str, Machine] = {}
    for line, row in table.rows:
        cells = " ".join("".join(get(row)) for get in columns) if row else ""
        match = _NODE.fullmatch(cells) if cells.isprintable() else None
        gpus = int(match[4]) if match else 0
        if match is None or match[1] in nodes or gpus > MAX_GPUS or bool(gpus) != bool(match[5]):
            found = ",".join(row)[:80] if row else "more or fewer fields than the header"
            raise BadInput(
                f"{path}:{line}: {found!r}; expected {', '.join(NODE_COLUMNS)}: a name that no other node has, whole "
                f"numbers (gpu: up to {MAX_GPUS}), and a GPU model where there are GPUs"
            )
        nodes[match[1]] = machine_of(match[5], gpus, int(match[2]), int(match[3]))
        if len(nodes) > MAX_NODES:
            raise BadInput(f"{path}:{line}: more than {MAX_NODES} nodes, expected at most that many")
    if not nodes:
        raise BadInput(f"{path}: no row under the header, expected at least one")
    return nodes


def _jobs(pods: list[TableJob]) -> tuple[Job, ...]:
    options: dict[tuple[object, ...], Option] = {}  # equal pods share one
    jobs = []
    for pod in pods:
        key = (pod.gpus, pod.cpu, pod.memory, pod.models)
        if key not in options:
            demand = Demand(
                gpus=ceil(pod.gpus),
                gpu_milli=ceil(1000 * pod.gpus) if 0 < pod.gpus < 1 else 1000,
                gpu_models=pod.models,
                cpu_millicores=ceil(1000 * pod.cpu),
                memory_mib=ceil(pod.memory),
            )
            options[key] = Option(demand=demand, value=ceil(1000 * pod.gpus) or 1)
        kind = KIND_BY_QOS.get(pod.queue or "", "training") if pod.gpus else "cpu"
        jobs.append(Job(id=pod.id, kind=kind, arrival_ms=pod.submit_ms, options=(options[key],)))
    return tuple(jobs)


def _slice(nodes: dict[str, Machine], limit: int, num_pods: int) -> dict[str, Machine]:
    members: dict[str, list[str]] = {}
    for name, machine in nodes.items():
        members.setdefault(machine.id, []).append(name)
    total = min(len(nodes), -(-len(nodes) * limit // num_pods))
    taken = {kind: total * len(names) // len(nodes) for kind, names in members.items()}
    by_remainder = sorted(members, key=lambda kind: -(total * len(members[kind]) % len(nodes)))
    for kind in by_remainder[: total - sum(taken.values())]:
        taken[kind] += 1
    chosen = {members[kind][i * len(members[kind]) // k] for kind, k in taken.items() for i in range(k)}
    return {name: machine for name, machine in nodes.items() if name in chosen}
