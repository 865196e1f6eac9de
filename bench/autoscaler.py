"""
Late requests and training under an autoscaler that lags: ``python bench/autoscaler.py [--seeds S,..] [--out FILE.md]``.

DynamoML's mix of 12 training jobs, an inference service and four notebooks (``placeopt_papers.scenarios.dynamoml``),
with the number of replicas decided every ``period`` by a load that is ``lag`` old, and pods that answer ``start`` after
they were placed. ``follow``, ``ahead`` and ``peak`` are the policy's field ``replicas``.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
from pathlib import Path
from statistics import fmean

from placeopt.environment import usable_cores, versions
from placeopt.formats.table import markdown_table
from placeopt.metrics import t_interval
from placeopt.model import Autoscaler
from placeopt.simulation import named_policy, simulate, summarise
from placeopt_papers.measures import MEASURES
from placeopt_papers.scenarios.dynamoml import dynamoml_scenario

LAGS_S = ((0, 0, 0), (15, 0, 10), (15, 15, 10), (15, 60, 30))
"""Period, lag and start: none; Kubernetes' default period; with metrics collected every 15 s; slow ones."""
PLAYED = (
    ("k8s-scaling", "follow"),
    ("dynamoml", "follow"),
    ("dynamoml", "ahead"),
    ("dynamoml", "peak"),
    ("placeopt", "follow"),
    ("placeopt", "ahead"),
    ("placeopt", "peak"),
)
SHOWN = ("late_percent", "training_min", "makespan_min")


def figures_of(policy: str, replicas: str, seed: int, lag_s: tuple[int, int, int]) -> dict[str, float]:
    """Return the figures of one simulation."""
    period, lag, start = (1000 * seconds for seconds in lag_s)
    world = dynamoml_scenario(seed=seed, autoscaler=Autoscaler(period_ms=period, lag_ms=lag), pod_start_ms=start)
    history = simulate(world, named_policy(policy).model_copy(update={"replicas": replicas}))
    summary = summarise(history, reasons=False)
    return {name: MEASURES[name].of(summary, history) or 0.0 for name in SHOWN}


def main() -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    rows = []
    for lag_s in LAGS_S:
        for policy, replicas in PLAYED:
            runs = [figures_of(policy, replicas, seed, lag_s) for seed in seeds]
            others = [f"{fmean(run[name] for run in runs):.1f}" for name in SHOWN[1:]]
            shares = [run["late_percent"] for run in runs]
            interval = t_interval(shares)
            shown = f"{fmean(shares):.2f}" + (f" ± {(interval.high - interval.low) / 2:.2f}" if interval else "")
            rows.append(("/".join(map(str, lag_s)), policy, replicas, shown, *others))
    columns = ("period/lag/start, s", "policy", "replicas", "requests late, %", "training, min", "all, min")
    command = shlex.join(["python", "bench/autoscaler.py", "--seeds", arguments.seeds])
    made_with = ", ".join(f"{name} {version}" for name, version in versions().items())
    text = (
        "# A lagging autoscaler\n\n"
        "DynamoML's mix of 12 training jobs. Late requests with their interval of 95 % over seeds; the mean training\n"
        f"time; the end of the last training job. `{command} --out bench/autoscaler.md`;\n"
        f"{usable_cores()} cores, Python {platform.python_version()}, {made_with}.\n\n"
        + markdown_table(columns, rows, right=columns[3:], aligned=True)
    )
    if arguments.out is None:
        print(text)
    else:
        arguments.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
