"""``python -m placeopt_papers.traces``, in ``papers/`` of a clone: files of others as scenarios."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from placeopt import PlaceoptError, write_document
from placeopt.importers import read_openb
from placeopt.simulation import Scenario
from placeopt_papers.traces.openb import openb_scenario, read_openb_run_times
from placeopt_papers.traces.philly import philly_scenario, read_philly
from placeopt_papers.traces.sc17_artifact import read_sc17
from placeopt_papers.traces.sia import read_sia, sia_scenario

FILES = {
    "openb": ("nodes", "pods"),
    "philly": ("trace",),
    "sia": ("workload",),
    "sc17": ("workload", "infrastructure", "profile"),
}
"""Trace -> its files."""


def main(words: Sequence[str] | None = None) -> int:
    """Write the scenario of a trace; 3 is returned where the input is wrong."""
    parser = argparse.ArgumentParser(prog="python -m placeopt_papers.traces", description=__doc__)
    traces = parser.add_subparsers(dest="trace_name", required=True)
    options = {name: traces.add_parser(name) for name in FILES}
    for name, trace in options.items():
        for file in FILES[name]:
            trace.add_argument(f"--{file}", type=Path, required=True, metavar="FILE")
        trace.add_argument("--out", type=Path, required=True, metavar="FILE", help=".json or .json.gz")
    for name in ("openb", "philly"):
        options[name].add_argument("--load", type=float, default=0.9, metavar="F", help="GPU time asked for / there is")
    options["openb"].add_argument("--part", type=int, default=20, metavar="N", help="one node of N, over all shapes")
    options["philly"].add_argument("--from-day", type=int, default=0, metavar="N")
    options["philly"].add_argument("--days", type=int, metavar="N")
    options["philly"].add_argument("--seed", type=int, default=0, metavar="N")
    options["philly"].add_argument("--interference", choices=("none", "sc17"), default="none")
    options["philly"].add_argument("--prediction-error", type=float, default=0.0, metavar="F")
    options["sc17"].add_argument("--machines", type=int, default=1, metavar="N")
    options["sia"].add_argument("--nodes", type=int, default=16, metavar="N", help="nodes of 4 GPUs")
    asked = parser.parse_args(words)
    try:
        write_document(asked.out, _scenario(asked))
    except (OSError, PlaceoptError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0


def _scenario(asked: argparse.Namespace) -> Scenario:
    if asked.trace_name == "sc17":
        return read_sc17(asked.workload, asked.infrastructure, asked.profile, machines=asked.machines)
    if asked.trace_name == "sia":
        return sia_scenario(read_sia(asked.workload), name=f"sia-{asked.workload.stem}", nodes=asked.nodes)
    if asked.trace_name == "philly":
        return philly_scenario(
            read_philly(asked.trace),
            from_day=asked.from_day,
            days=asked.days,
            load=asked.load,
            seed=asked.seed,
            interference=asked.interference,
            prediction_error=asked.prediction_error,
        )
    round_ = read_openb(asked.nodes, asked.pods)
    cluster = read_openb(asked.nodes, asked.pods, limit=max(1, len(round_.jobs) // asked.part)).cluster
    return openb_scenario(round_, read_openb_run_times(asked.pods), cluster=cluster, load=asked.load)


if __name__ == "__main__":
    sys.exit(main())
