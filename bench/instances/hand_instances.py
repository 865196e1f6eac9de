"""
Rounds made by hand whose optimum can be worked out in words: ``instances/hand/README.md`` does.

All count communication only, so that the cost level, too, has an optimum that can be read off.
"""

from placeopt.model import (
    Assignment,
    Cluster,
    Communication,
    Demand,
    Instance,
    Job,
    Machine,
    Node,
    NodeConditions,
    Option,
    Policy,
    Running,
    Weights,
    WorkerGpus,
)
from placeopt.topology.builders import dgx1, minsky

POLICY = Policy(name="communication", weights=Weights(communication=1000, interference=0, fragmentation=0))
SC17_DISTANCES = ((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0))


def hand_instances() -> list[Instance]:
    """All of them."""
    return [minsky_1(), dgx1_1(), dgx1_tour(), minskys_wait()]


def minsky_1() -> Instance:
    """A Minsky with one GPU taken: whoever takes the other socket first decides."""
    machine = Machine(**(dict(minsky()) | {"gpu_distance_matrix": SC17_DISTANCES}))
    return Instance(
        name="minsky-1",
        note="By hand; distances as in the scenarios of Amaral et al. (SC'17): 1 in a socket, 20 across.",
        cluster=_one(machine),
        jobs=(_job("held", 1, 0, 1000), _job("late", 1, 0, 900), _job("solo", 1, 0, 1000), _job("pair", 2, 4, 2000)),
        running=(_running("held", 0),),
        policy=POLICY,
    )


def dgx1_1() -> Instance:
    """A DGX-1 with two GPUs taken, in different quads: a pair and a quad share the other six."""
    return Instance(
        name="dgx1-1",
        note="By hand; distances over NVLink: 1 for GPUs with a link, 2 for the others.",
        cluster=_one(dgx1()),
        jobs=(
            _job("held-a", 1, 0, 1000),
            _job("held-b", 1, 0, 1000),
            _job("whole", 8, 1, 8000),
            _job("late", 1, 0, 900),
            _job("pair", 2, 4, 2000),
            _job("quad", 4, 3, 4000),
        ),
        running=(_running("held-a", 0), _running("held-b", 5)),
        policy=POLICY,
    )


def dgx1_tour() -> Instance:
    """An empty DGX-1 and jobs of 4, 2 and 1 GPUs for more than its eight: the first example of the README."""
    return Instance(
        name="dgx1-tour",
        note="By hand; distances over NVLink: 1 for GPUs with a link, 2 for the others.",
        cluster=_one(dgx1()),
        jobs=(
            _job("resnet", 4, 4, 4000),
            _job("bert", 2, 3, 2000),
            _job("notebook", 1, 0, 1000),
            _job("probe", 1, 0, 1000),
            _job("backlog", 4, 1, 3500),
        ),
        policy=POLICY,
    )


def minskys_wait() -> Instance:
    """Two Minskys with a GPU taken in every socket: one socket is whole again soon, the others late."""
    machine = Machine(**(dict(minsky()) | {"gpu_distance_matrix": SC17_DISTANCES}))
    nodes = tuple(Node(id=f"node-{n}", machine=machine.id) for n in (0, 1))
    left = {("held-a", 0, 0): 5_000, ("held-b", 0, 2): 900_000, ("held-c", 1, 0): 500_000, ("held-d", 1, 2): 900_000}
    now = 1_000_000
    running = tuple(_running(name, gpu, f"node-{n}", now + ms) for (name, n, gpu), ms in left.items())
    pairs = tuple(
        Job(
            id=name,
            options=(Option(demand=_demand(2), value=2000, run_time_ms=100_000),),
            communication=Communication(weight=1, spread_slowdown_thousandths=300),
            conditions=NodeConditions(nodes_allowed=(node,)),
            utility_min_thousandths=300,
        )
        for name, node in (("soon", "node-0"), ("late", "node-1"))
    )
    return Instance(
        name="minskys-wait",
        note="By hand; distances as in the scenarios of Amaral et al. (SC'17): 1 in a socket, 20 across.",
        now_ms=now,
        cluster=Cluster(machines=(machine,), nodes=nodes),
        jobs=(*(_job(name, 1, 0, 1000) for name, _, _ in left), *pairs),
        running=running,
        policy=POLICY,
    )


def _one(machine: Machine) -> Cluster:
    return Cluster(machines=(machine,), nodes=(Node(id="node-0", machine=machine.id),))


def _job(name: str, gpus: int, weight: int, value: int) -> Job:
    return Job(
        id=name, options=(Option(demand=_demand(gpus), value=value),), communication=Communication(weight=weight)
    )


def _demand(gpus: int) -> Demand:
    return Demand(gpus=gpus, cpu_millicores=2000 * gpus, memory_mib=16_384 * gpus)


def _running(name: str, gpu: int, node: str = "node-0", end_ms: int | None = None) -> Running:
    assignment = Assignment(
        node=node,
        gpus={str(gpu): 1000},
        cpu_millicores=2000,
        memory_mib=16_384,
        workers=(WorkerGpus(rank=0, gpus=(gpu,)),),
    )
    return Running(job=name, option="default", assignments=(assignment,), expected_end_ms=end_ms)
