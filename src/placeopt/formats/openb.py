"""
Alibaba's cluster-trace-gpu-v2023 ("openb"): a node list and a pod list as CSV files.

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023; the workload of Weng et al., "Beware of
Fragmentation" (USENIX ATC'23). The trace states no sockets, links, GPU memory, bandwidths, communication or
interference, and the reader adds none, so none of them can bind.
"""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.formats.csv_table import is_word, read_csv_table
from placeopt.formats.faults import validation_fault
from placeopt.model.base import MAX_NODES
from placeopt.model.cluster import Cluster, Node
from placeopt.model.instance import Instance
from placeopt.model.job import Demand, Job, JobKind, Option
from placeopt.model.machine import Gpu, Machine
from placeopt.model.policy import Fragmentation, Policy, Weights

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

MAX_MODEL_LENGTH = 200
"""Characters of a GPU model, which becomes part of the name of a machine type."""
MAX_MODELS = 256
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS_NEEDED = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
POD_COLUMNS_OPTIONAL = ("gpu_spec", "qos", "creation_time")
TIME_COLUMNS = ("name", "creation_time", "deletion_time", "scheduled_time")


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
        CSV, gzip or not, with the columns ``name, cpu_milli, memory_mib, num_gpu, gpu_milli``. ``gpu_spec``, ``qos``
        and ``creation_time`` are optional (the list ``multigpu20`` lacks them); others are ignored.
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
        If a file is not a table of these columns (see `read_csv_table`), a number is malformed or out of range, or a
        name repeats. The message states file, line, column, value and expectation.

    Notes
    -----
    The slice of nodes: of N nodes, T = ceil(N * limit / pods) are taken, at least one. Each shape gets its share
    T * n / N, rounded down; the remaining nodes go to the shapes with the largest remainders, ties to the shape that
    comes first in the file. Of a shape's n nodes, the k taken are those at positions floor(i * n / k), i = 0 .. k - 1.
    This keeps the mix of GPUs, and the same limit always gives the same nodes.

    Deletion and scheduling times are left out: they state when the trace's own cluster ran a pod, not what it needs.
    """
    nodes = _read_nodes(nodes_csv)
    pods = _read_pods(pods_csv)
    title = name if name is not None else Path(pods_csv).name.removesuffix(".gz").removesuffix(".csv")
    if limit is not None:
        if limit < 1:
            raise BadInput(f"limit: {limit}, expected at least 1 pod")
        nodes = _slice(nodes, limit, len(pods))
        pods = pods[:limit]
        title = title if name is not None else f"{title}-first-{limit}"
    try:
        return _instance(nodes, pods, title, Path(nodes_csv).name, Path(pods_csv).name)
    except ValidationError as error:  # models that differ in case only, a name that is too long
        raise validation_fault(Instance, error, f"{nodes_csv}, {pods_csv}") from None


@checked
def read_openb_run_times(pods_csv: str | Path) -> dict[str, int]:
    """
    Return pod -> run time in the trace, in ms, at least 1: from its scheduling, or else its creation, to its deletion.

    The list ``multigpu20`` has no times.
    """
    times = {}
    for row in read_csv_table(pods_csv, TIME_COLUMNS, key="name"):
        start = row.text("scheduled_time") or row.text("creation_time")
        end = row.text("deletion_time")
        try:
            times[row.text("name")] = max(1, round(1000 * (float(end) - float(start))))
        except (ValueError, OverflowError):
            raise BadInput(
                f"{pods_csv}: pod {row.text('name')!r}: times {start!r}, {end!r}; expected seconds"
            ) from None
    return times


@dataclass(frozen=True)
class _Shape:
    model: str
    gpus: int
    cpu_millicores: int
    memory_mib: int

    @property
    def id(self) -> str:
        cpu = self.cpu_millicores
        cores = f"{cpu // 1000}c" if cpu % 1000 == 0 else f"{cpu}mc"
        kind = f"{self.model.lower()}-{self.gpus}gpu" if self.gpus else "cpu"
        return f"{kind}-{cores}-{self.memory_mib}m"


@dataclass(frozen=True)
class _Node:
    id: str
    shape: _Shape


def _read_nodes(path: str | Path) -> list[_Node]:
    nodes = []
    for row in read_csv_table(path, NODE_COLUMNS, key="sn", max_rows=MAX_NODES):
        gpus, model = row.integer("gpu", 0, 1024), row.text("model")
        if bool(gpus) != bool(model):
            raise row.error("model", "a GPU model where 'gpu' is above 0, and nothing where it is 0")
        if model and not is_word(model, MAX_MODEL_LENGTH):
            raise row.error("model", f"1 to {MAX_MODEL_LENGTH} printable characters without white space")
        shape = _Shape(model, gpus, row.integer("cpu_milli", 0, 10**8), row.integer("memory_mib", 0, 10**9))
        nodes.append(_Node(row.text("sn"), shape))
    return nodes


def _read_pods(path: str | Path) -> list[Job]:
    options: dict[tuple[int, int, int, int, str], Option] = {}  # equal pods share one
    jobs = []
    for row in read_csv_table(path, POD_COLUMNS_NEEDED, POD_COLUMNS_OPTIONAL, key="name"):
        gpus = row.integer("num_gpu", 0, 1024)
        milli = row.integer("gpu_milli", 0, 1000)
        if (milli == 0) != (gpus == 0) or (gpus > 1 and milli != 1000):
            raise row.error("gpu_milli", f"0 without a GPU, 1..1000 with one, 1000 with more; num_gpu is {gpus}")
        cpu, memory = row.integer("cpu_milli", 0, 10**8), row.integer("memory_mib", 0, 10**9)
        spec = row.text("gpu_spec")
        key = (gpus, milli, cpu, memory, spec)
        if key not in options:
            models = tuple(dict.fromkeys(spec.split("|"))) if spec else ()  # the trace repeats a model now and then
            if not all(is_word(model, MAX_MODEL_LENGTH) for model in models) or len(models) > MAX_MODELS:
                raise row.error("gpu_spec", f"at most {MAX_MODELS} GPU models joined by '|'")
            demand = Demand(
                gpus=gpus, gpu_milli=milli or 1000, gpu_models=models, cpu_millicores=cpu, memory_mib=memory
            )
            options[key] = Option(demand=demand, value=gpus * milli or 1)
        jobs.append(
            Job(
                id=row.text("name"),
                kind=KIND_BY_QOS.get(row.text("qos"), "training") if gpus else "cpu",
                arrival_ms=1000 * row.integer("creation_time", 0, 10**10) if row.has("creation_time") else 0,
                options=(options[key],),
            )
        )
    return jobs


def _instance(nodes: list[_Node], pods: list[Job], title: str, nodes_name: str, pods_name: str) -> Instance:
    return Instance(
        name=title,
        now_ms=max(pod.arrival_ms for pod in pods),
        note=(
            "Alibaba cluster-trace-gpu-v2023 (openb), https://github.com/alibaba/clusterdata: "
            f"nodes of {nodes_name}, pods of {pods_name}. "
            f"{len(pods)} pods, {len(nodes)} nodes, {sum(node.shape.gpus for node in nodes)} GPUs."
        ),
        cluster=_cluster(nodes),
        jobs=tuple(pods),
        policy=OPENB_POLICY,
    )


def _cluster(nodes: list[_Node]) -> Cluster:
    shapes = sorted({node.shape for node in nodes}, key=lambda shape: shape.id)
    machines = tuple(
        Machine(
            id=shape.id,
            cpu_millicores=shape.cpu_millicores,
            memory_mib=shape.memory_mib,
            gpus=tuple(
                Gpu(model=shape.model, memory_mib=GPU_MEMORY_MIB.get(shape.model, 0)) for _ in range(shape.gpus)
            ),
            source="openb",
        )
        for shape in shapes
    )
    return Cluster(machines=machines, nodes=tuple(Node(id=node.id, machine=node.shape.id) for node in nodes))


def _slice(nodes: list[_Node], limit: int, num_pods: int) -> list[_Node]:
    members: dict[_Shape, list[int]] = {}
    for i, node in enumerate(nodes):
        members.setdefault(node.shape, []).append(i)
    total = min(len(nodes), -(-len(nodes) * limit // num_pods))
    taken = {shape: total * len(of_shape) // len(nodes) for shape, of_shape in members.items()}
    by_remainder = sorted(members, key=lambda shape: -(total * len(members[shape]) % len(nodes)))
    for shape in by_remainder[: total - sum(taken.values())]:
        taken[shape] += 1
    chosen = [members[shape][i * len(members[shape]) // k] for shape, k in taken.items() for i in range(k)]
    return [nodes[i] for i in sorted(chosen)]
