"""
What whole rounds would gain over job by job: ``python bench/job_by_job_gap.py --philly CSV --sia FOLDER``.

``placeopt`` decides Philly's days and Sia's samples job by job. At every ``--every``-th round in which jobs wait and
some start, the same round is solved whole, beside the same running jobs: value proven, a job worth the rate at which it
ends (10^11 / its run time in ms), as for `placeopt-jct`. The gap is what the jobs that placeopt started lack of the
proven bound. Restarts are unstated here, so no job is stopped, and no job waits for closer GPUs: a round decides on
free GPUs alone, job by job as whole.
"""

from __future__ import annotations

import argparse
import platform
import sys
import threading
import time
from pathlib import Path
from statistics import fmean, quantiles
from unittest.mock import patch

from placeopt import Policy, solve
from placeopt.environment import usable_cores, versions
from placeopt.formats.traces import read_philly, read_sia
from placeopt.generators.philly_scenario import philly_scenario
from placeopt.generators.sia_scenario import sia_scenario
from placeopt.model import Scenario
from placeopt.simulation import named_policy, play, simulate
from placeopt.simulation.scheduling.decision import Decision, RoundView
from placeopt.simulation.scheduling.job_by_job import JobByJob
from placeopt.simulation.scheduling.scheduler import VALUE_OF_MS
from placeopt.solving.params import SolveParams

ROUND = Policy.model_validate(
    {"share_mode": "exclusive", "weights": {"communication": 0, "interference": 0, "fragmentation": 0}}
)
Sample = tuple[int, int, int, int, float, float]
"""Jobs that waited, value started, value of the whole round, its bound, seconds of both decisions."""


def sampling(every: int, samples: list[Sample], most: int, done: threading.Event) -> type[JobByJob]:
    """Return a scheduler that solves every ``every``-th round whole as well."""

    class Sampled(JobByJob):
        rounds_seen = 0

        def decide(self, view: RoundView, params: SolveParams, cancel: threading.Event | None) -> Decision:
            started = time.process_time()
            decision = super().decide(view, params, cancel)
            own_s = time.process_time() - started
            waited = self.num_waiting + len(decision.start)
            if not decision.start or waited < 2:
                return decision
            Sampled.rounds_seen += 1
            if Sampled.rounds_seen % every == 0:
                samples.append((waited, *self._whole(decision), own_s))
                if len(samples) >= most:
                    done.set()
            return decision

        def _whole(self, decision: Decision) -> tuple[int, int, int, float]:
            """Return the value started, the value of the round solved whole, its bound, and the time it took."""
            snapshot = self._engine.snapshot
            begun = {placement.job for placement in decision.start}
            worth = {
                job.id: VALUE_OF_MS // max(1, self._jobs[job.id].options[0].run_time_ms or 1) for job in snapshot.jobs
            }
            jobs = tuple(
                job.model_copy(
                    update={"options": tuple(each.model_copy(update={"value": worth[job.id]}) for each in job.options)}
                )
                for job in snapshot.jobs
            )
            running = tuple(held for held in snapshot.running if held.job not in begun)
            held = sum(worth[entry.job] for entry in running)
            instance = snapshot.model_copy(update={"jobs": jobs, "running": running, "policy": ROUND})
            started = time.perf_counter()
            plan = solve(instance, time_limit_s=5, seed=0)
            took = time.perf_counter() - started
            value = plan.levels[0]
            bound = value.objective if value.bound is None else value.bound
            return sum(worth[job] for job in begun), value.objective - held, bound - held, took

    return Sampled


def row(name: str, scenario: Scenario, every: int, most: int) -> str:
    """Play a scenario until there are enough samples, and return a row of the table."""
    physics = scenario.physics.model_copy(update={"restart_ms": 0})
    samples: list[Sample] = []
    done = threading.Event()
    policy = named_policy("placeopt").model_copy(update={"apart_max_thousandths": None})
    with patch.object(play, "JobByJob", sampling(every, samples, most, done)):
        simulate(scenario.model_copy(update={"physics": physics}), policy, cancel=done)
    gaps = [100 * (1 - own / bound) for _, own, _, bound, _, _ in samples]
    whole = [100 * (1 - value / bound) for _, _, value, bound, _, _ in samples]
    total = 100 * (1 - sum(own for _, own, *_ in samples) / sum(bound for _, _, _, bound, _, _ in samples))
    none = sum(gap < 1e-6 for gap in gaps)
    return (
        f"| {name} | {len(samples)} | {fmean(waited for waited, *_ in samples):.1f} | {none} | {fmean(gaps):.2f} "
        f"| {quantiles(gaps, n=20)[-1]:.1f} | {total:.2f} | {fmean(whole):.2f} "
        f"| {1000 * fmean(own for *_, own in samples):.1f} | {1000 * fmean(took for *_, took, _ in samples):.0f} |"
    )


def main() -> int:
    """Sample and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--philly", type=Path, required=True, help="the trace")
    parser.add_argument("--days", default="30,40")
    parser.add_argument("--sia", type=Path, required=True, help="folder of Sia's workload-1.csv, ...")
    parser.add_argument("--samples", default="4,6")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--most", type=int, default=40, help="rounds sampled of a scenario")
    parser.add_argument("--out", type=Path, help="write the table here as well")
    asked = parser.parse_args()
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "# What whole rounds would gain over job by job",
        "",
        f"`python bench/job_by_job_gap.py --philly CSV --days {asked.days} --sia FOLDER --samples {asked.samples} "
        f"--every {asked.every} --most {asked.most}`, {usable_cores()} cores, Python {platform.python_version()}, "
        f"{known}.",
        "",
        "Rounds of `placeopt` in which jobs wait and some start, solved whole beside the same running jobs within 5 s, "
        "a job worth the rate at which it ends. Gap: what the jobs that `placeopt` started lack of the proven bound, "
        "in percent; in all: of the values of all sampled rounds together. No job is stopped, or waits for closer "
        "GPUs.",
        "",
        "| trace | rounds | jobs waiting | without gap | gap, mean % | gap, 95th % | in all, % "
        "| gap of the whole round, % | decision, ms of CPU | whole round, ms |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    jobs = read_philly(asked.philly)
    for day in map(int, asked.days.split(",")):
        scenario = philly_scenario(jobs, seed=1, from_day=day, days=1, load=1.2, interference="sc17")
        lines.append(row(f"Philly, day {day}, load 1.2", scenario, asked.every, asked.most))
        print(lines[-1], flush=True)
    for sample in asked.samples.split(","):
        path = asked.sia / f"workload-{sample}.csv"
        scenario = sia_scenario(read_sia(path), name=f"sia-newtrace-{sample}")
        lines.append(row(f"Sia, sample {sample}", scenario, asked.every, asked.most))
        print(lines[-1], flush=True)
    text = "\n".join([*lines, ""])
    print(text)
    if asked.out is not None:
        asked.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
