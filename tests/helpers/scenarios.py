"""Small scenarios in code, and a reader of logs that is independent of the simulator."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from placeopt.build import job, machine, node
from placeopt.model import Cluster, Communication, Gpu, Interference, Job, Part, Policy, Slowdown, Weights
from placeopt.scheduling import Scheduling
from placeopt.simulation import Arrival, Physics, Scenario

PLAIN = Policy(
    weights=Weights(communication=0, interference=0, fragmentation=0), interference=Interference(model="worst")
)


RULES = ("order", "choice", "cores", "bandwidth", "replicas", "preempts", "elastic", "divides", "watch")
"""Fields of a policy that name a rule: here its name alone will do."""


def two_sockets(**fields: Any) -> Any:
    """Return a machine of two sockets with two GPUs each: 1 apart inside, 20 across."""
    return machine(
        gpus=[Gpu(model="P100", memory_mib=16_384, part=f"s{i // 2}") for i in range(4)],
        parts=(Part(id="s0", level="socket"), Part(id="s1", level="socket")),
        gpu_distance_matrix=((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0)),
        **fields,
    )


def timed(name: str, arrival_ms: int, run_ms: int, *, gpus: int = 1, spread: int | None = None, **fields: Any) -> Job:
    """Build a job that arrives and predicts its run time; with ``spread`` its GPUs talk."""
    if spread is not None:
        fields["communication"] = Communication(weight=1, spread_slowdown_thousandths=spread)
    return job(name, gpus=gpus, arrival_ms=arrival_ms, run_time_ms=run_ms, **fields)


def scenario(jobs: Iterable[Job | Arrival], *, nodes: int = 1, **fields: Any) -> Scenario:
    """Build a scenario on machines of two sockets; predictions are true unless ``actual`` says otherwise."""
    box = two_sockets(**fields.pop("machine", {}))
    actual = fields.pop("actual", {})
    physics = fields.pop("physics", {})
    return Scenario(
        name="made",
        cluster=Cluster(machines=(box,), nodes=tuple(node(f"n{i}") for i in range(nodes))),
        physics=physics if isinstance(physics, Physics) else Physics(**physics),
        arrivals=tuple(
            one if isinstance(one, Arrival) else Arrival(job=one, actual_run_time_ms=actual.get(one.id)) for one in jobs
        ),
        **fields,
    )


def policy(method: str = "fcfs", **fields: Any) -> Scheduling:
    """Build a scheduling policy that places job by job, or whole rounds if ``rounds`` says so; rules by name alone."""
    named = {
        field: {"rule": value} if field in RULES and isinstance(value, str) else value
        for field, value in fields.items()
    }
    return Scheduling(**{"name": method, "rounds": "each", "method": method, "policy": PLAIN, **named})


def random_scenario(seed: int, *, jobs: int = 30, nodes: int = 3, spread: bool = True, **physics: Any) -> Scenario:
    """Draw jobs of 1 to 4 GPUs, gangs, shares of a GPU and CPU jobs, with profiles that slow each other down."""
    dice = random.Random(seed)
    drawn = []
    for i in range(jobs):
        gpus, workers = dice.choice([(1, 1), (1, 1), (1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (1, 3), (0, 1)])
        share = dice.choice([1000, 250, 250, 500]) if gpus == workers == 1 else 1000
        drawn.append(
            timed(
                f"j{i}",
                dice.randrange(60_000),
                dice.randrange(1, 30_000),
                gpus=gpus,
                workers=workers,
                gpu_milli=share,
                gpu_utilisation_percent=dice.choice([0, 30, 70]) if gpus else 0,
                cpu_millicores=dice.choice([0, 4000, 16_000]),
                spread=dice.choice([None, 0, 300]) if spread and gpus * workers > 1 else None,
                profile=dice.choice(["a", "a", "b", None]),
                utility_min_thousandths=dice.choice([None, 200]),
                user=dice.choice(["u", "v"]),
            )
        )
    slowdowns = [
        Slowdown(
            profile=profile,
            beside=other,
            gpu_thousandths=dice.randrange(900),
            socket_thousandths=dice.randrange(500),
            node_thousandths=dice.choice([0, 100]),
        )
        for profile in "ab"
        for other in "ab"
    ]
    actual = {record.id: dice.randrange(1, 30_000) for record in drawn if dice.random() < 0.5}
    return scenario(drawn, nodes=nodes, slowdowns=tuple(slowdowns), actual=actual, physics=physics)


def log_lines(path: Path) -> list[dict[str, Any]]:
    """Read a log."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
