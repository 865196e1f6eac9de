"""Random policies of a small round: every share mode, limit, cost and queue, switched on and off."""

from __future__ import annotations

from helpers.small_rounds.cluster import GPU_MODELS
from helpers.small_rounds.dice import Dice
from placeopt.model import (
    Fragmentation,
    Horus,
    Interference,
    Policy,
    Queue,
    Quota,
    SlowdownCurve,
    TargetWorker,
    Usable,
    Weights,
)

FITTED = SlowdownCurve(square_millionths=777_777, linear_millionths=250_001, constant_millionths=3)


def random_policy(dice: Dice) -> Policy:
    """Draw a policy: share mode, usable bandwidth, weights, forms of the costs, queues."""
    mode = dice.pick(("exclusive", "fraction", "fraction", "overcommit"))
    most = (
        dice.number(2, 3)
        if mode == "overcommit"
        else dice.maybe(0.3, dice.number(1, 3))
        if mode == "fraction"
        else None
    )
    levels = ("node", "rack", "zone", "socket", "switch")
    return Policy(
        share_mode=mode,
        jobs_per_gpu_max=most,
        usable=Usable(
            memory_bandwidth_percent=dice.pick((75, 100, 33)),
            pcie_bandwidth_percent=dice.pick((100, 66)),
            network_gpu_jobs_percent=dice.pick((75, 100, 50)),
            network_cpu_jobs_percent=dice.pick((25, 100, 0)),
        ),
        weights=_random_weights(dice),
        interference=Interference(
            model=dice.pick(("pairwise", "worst", "curve")), curve=dice.pick(("gtx-1080", "rtx-2080", FITTED))
        ),
        fragmentation=Fragmentation(
            form=dice.pick(("partial", "fgd")),
            level_weights={level: dice.number(0, 3) for level in levels if dice.chance(0.6)},
            target=_random_target(dice) if dice.chance(0.4) else (),
        ),
        horus=Horus(
            memory_thousandths=dice.pick((500, 0, 1000, 123_457)), utilisation_thousandths=dice.pick((500, 0, 77_777))
        ),
        queues=_random_queues(dice) if dice.chance(0.3) else (),
    )


def _random_target(dice: Dice) -> tuple[TargetWorker, ...]:
    """Draw one to four typical workers for the fragmentation form ``fgd``."""
    gpus = [dice.pick((0, 1, 1, 1, 2, 3)) for _ in range(dice.number(1, 4))]
    return tuple(
        TargetWorker(
            gpus=number,
            gpu_milli=dice.number(50, 1000, 50) if number == 1 else 1000,
            gpu_models=tuple(dice.some(GPU_MODELS)) if dice.chance(0.4) else (),
            cpu_millicores=dice.number(0, 8000, 500) if dice.chance(0.6) else 0,
            count=dice.number(1, 9),
        )
        for number in gpus
    )


def _random_weights(dice: Dice) -> Weights:
    """Draw which costs count, and weights that sum to 1000 thousandths."""
    names = ("communication", "interference", "fragmentation", "horus", "resource")
    active = dice.some(names)
    if not active:
        return Weights(**dict.fromkeys(names, 0))
    parts = {name: dice.number(1, 9) for name in active}
    shares = {name: 1000 * part // sum(parts.values()) for name, part in parts.items()}
    shares[active[0]] += 1000 - sum(shares.values())
    return Weights(**{**dict.fromkeys(names, 0), **shares})


def _random_queues(dice: Dice) -> tuple[Queue, ...]:
    """Draw two queues, each with some of quota, borrowing and dominant share."""

    def quota(p: float, step: int) -> Quota:
        return Quota(
            gpu_milli=dice.maybe(p, dice.number(0, 4000, 250) // step),
            cpu_millicores=dice.maybe(p / 2, dice.number(2000, 16_000, 1000) // step),
            memory_mib=dice.maybe(p / 2, dice.number(8000, 64_000, 4000) // step),
        )

    return tuple(
        Queue(
            id=name,
            quota=quota(0.6, 1),
            borrow=quota(0.4, 2),
            dominant_share_percent=dice.maybe(0.4, dice.number(10, 90)),
            borrow_percent=dice.pick((0, 0, 10)),
        )
        for name in ("q0", "q1")
    )
