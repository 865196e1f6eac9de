"""Jobs that arrive over time."""

from __future__ import annotations

from typing import Any

from placeopt import build
from placeopt.model import Communication, Gpu, Part
from placeopt.simulation import Scenario
from strategies.choice import Choice
from strategies.rounds import make_slowdowns


def make_scenario(
    choice: Choice,
    *,
    most_jobs: int = 12,
    within_ms: int = 60_000,
    limits: bool = False,
    elastic: bool = False,
    **physics: Any,
) -> Scenario:
    """
    Jobs of 1 to 4 GPUs, gangs, shares and CPU jobs that arrive on one to three nodes of two sockets.

    Parameters
    ----------
    most_jobs
        Largest number of jobs.
    within_ms
        They arrive before.
    limits
        Whether shares may be granted above the request.
    elastic
        Whether some jobs are elastic.
    **physics
        Fields of `Physics`.
    """
    box = build.machine(
        gpus=[Gpu(model="P100", memory_mib=16_384, part=f"s{i // 2}") for i in range(4)],
        parts=(Part(id="s0", level="socket"), Part(id="s1", level="socket")),
        gpu_distance_matrix=((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0)),
    )
    made, actual = [], {}
    for i in range(choice.number(1, most_jobs)):
        shapes = ((1, 1), (1, 1), (1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (1, 3), (0, 1))
        gpus, workers = choice.pick(shapes)
        fields: dict[str, Any] = {}
        if gpus == workers == 1:
            fields["gpu_milli"] = choice.pick((1000, 250, 250, 500))
        if limits and gpus == workers == 1:
            fields["gpu_milli_limit"] = choice.pick((None, 1000, min(1000, fields["gpu_milli"] + 150)))
        if elastic and workers > 1:
            fields |= {"workers_min": 1, "value": 2 + 3 * workers, "value_per_worker": 3}
        if gpus * workers > 1 and choice.chance(0.67):
            fields["communication"] = Communication(weight=1, spread_slowdown_thousandths=choice.pick((0, 300)))
        arrival_ms = choice.number(0, within_ms)
        made.append(
            build.job(
                f"j{i}",
                gpus=gpus,
                workers=workers,
                arrival_ms=arrival_ms,
                expected_completion_ms=arrival_ms + choice.number(1, 60_000) if choice.chance(0.7) else None,
                kind=choice.pick(("training", "inference")) if gpus else "cpu",
                memory_mib=choice.pick((0, 100_000)),
                run_time_ms=choice.number(1, 30_000),
                gpu_utilisation_percent=choice.pick((0, 30, 70)) if gpus else 0,
                cpu_millicores=choice.pick((0, 4000, 16_000)),
                profile=choice.pick((None, "a", "a", "b")),
                user=choice.pick(("u", "v")),
                priority=choice.number(0, 2),
                **fields,
            )
        )
        if choice.chance(0.5):
            actual[f"j{i}"] = choice.number(1, 30_000)
    return build.scenario(
        choice.number(1, 3),
        made,
        machines=[box],
        run_time_ms=actual,
        slowdowns=make_slowdowns(choice, "ab"),
        physics=physics,
        name="scenario",
    )
