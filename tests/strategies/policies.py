"""Policies of every share mode, limit, cost and queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placeopt.model import (
    Flavor,
    FlavorAllowance,
    Fragmentation,
    Interference,
    Policy,
    Queue,
    Quota,
    SlowdownCurve,
    TargetWorker,
    Usable,
    Weights,
)
from strategies.choice import Choice, strategy
from strategies.clusters import GPU_MODELS

COSTS = ("communication", "interference", "fragmentation", "horus", "resource")
FITTED = SlowdownCurve(square_millionths=777_777, linear_millionths=250_001, constant_millionths=3)


def make_cost_weights(choice: Choice, names: Sequence[str] = COSTS, *, some: bool = False) -> Weights:
    """Draw which of the costs count, and thousandths that sum to 1000; or none at all, unless ``some`` must."""
    parts = {name: choice.number(1, 9) for name in choice.some(names) or names[:some]}
    shares = {name: 1000 * part // sum(parts.values()) for name, part in parts.items()}
    if shares:
        shares[next(iter(shares))] += 1000 - sum(shares.values())
    return Weights(**{**dict.fromkeys(COSTS, 0), **shares})


def make_policy(choice: Choice, **fields: Any) -> Policy:
    """Policies of every share mode, limit, cost and queue, each on and off; ``fields`` are not drawn."""
    mode = fields.get("share_mode", choice.pick(("fraction", "exclusive", "fraction", "overcommit")))
    most = {"exclusive": lambda: None, "fraction": lambda: choice.maybe(0.3, 1, 3)}.get(
        mode, lambda: choice.number(2, 3)
    )()
    drawn = {
        "share_mode": mode,
        "jobs_per_gpu_max": most,
        "usable": Usable(
            memory_bandwidth_percent=choice.pick((100, 75, 33)),
            pcie_bandwidth_percent=choice.pick((100, 66)),
            network_gpu_jobs_percent=choice.pick((100, 75, 50)),
            network_cpu_jobs_percent=choice.pick((100, 25, 0)),
        ),
        "weights": make_cost_weights(choice),
        "interference": Interference(
            model=choice.pick(("pairwise", "worst", "curve")), curve=choice.pick(("rtx-2080", "gtx-1080", FITTED))
        ),
        "fragmentation": Fragmentation(
            form=choice.pick(("partial", "fgd")),
            level_weights={level: choice.number(0, 3) for level in choice.some(("node", "rack", "zone", "socket"))},
            target=tuple(_target(choice) for _ in range(choice.number(1, 4))) if choice.chance(0.4) else (),
        ),
        "costs": {
            "horus": {
                "memory_thousandths": choice.pick((500, 0, 1000, 123_457)),
                "utilisation_thousandths": choice.pick((500, 0, 77_777)),
            }
        },
        "queues": tuple(_queue(choice, name) for name in ("q0", "q1")) if choice.chance(0.3) else (),
    }
    has_flavors = any(queue.flavors for queue in {**drawn, **fields}["queues"])
    flavors = tuple(Flavor(id=name, gpu_models=(name,)) for name in GPU_MODELS if has_flavors)
    return Policy(**{**drawn, "flavors": flavors, **fields})


def _target(choice: Choice) -> TargetWorker:
    """Draw a worker that is expected to come."""
    gpus = choice.pick((1, 1, 1, 0, 2, 3))
    return TargetWorker(
        gpus=gpus,
        gpu_milli=choice.number(50, 1000, 50) if gpus == 1 else 1000,
        gpu_models=tuple(choice.some(GPU_MODELS)) if choice.chance(0.4) else (),
        cpu_millicores=choice.number(0, 8000, 500) if choice.chance(0.6) else 0,
        count=choice.number(1, 9),
    )


def _queue(choice: Choice, name: str) -> Queue:
    """Draw a queue with some of quota, borrowing and dominant share."""

    def quota(p: float, part: int) -> Quota:
        return Quota(
            gpu_milli=choice.maybe(p, 0, 4000 // part, 125),
            cpu_millicores=choice.maybe(p / 2, 2000 // part, 16_000 // part, 500),
            memory_mib=choice.maybe(p / 2, 8000 // part, 64_000 // part, 2000),
        )

    return Queue(
        id=name,
        quota=quota(0.6, 1),
        borrow=quota(0.4, 2),
        dominant_share_percent=choice.maybe(0.4, 10, 90),
        borrow_percent=choice.pick((0, 0, 10)),
        flavors=tuple(_of_flavor(choice, name) for name in choice.some(GPU_MODELS, 0.7)) if choice.chance(0.3) else (),
    )


def _of_flavor(choice: Choice, name: str) -> FlavorAllowance:
    """Draw what a queue may hold on the nodes of a flavor."""
    return FlavorAllowance(flavor=name, quota=Quota(gpu_milli=choice.maybe(0.7, 0, 4000, 250)))


policies = strategy(make_policy)
