"""
Rounds of a cluster that stays, beside solving anew: ``python bench/resident_rounds.py [--nodes N] [--out FILE.md]``.

N nodes of 8 GPUs are filled by greedy with jobs of a spec of ``placeopt.generate``, and some jobs are left waiting.
Rounds follow, of CHANGES changes each: half as many jobs end, drawn at random, as many others arrive, and every tenth
round a node is drained, the one before it no longer. Each round is solved by ``place(waiting_only=True)`` and
committed. Every so many rounds the snapshot is also solved anew, by a second engine whose solver is warm, from the
instance on, and by ``place()``, which lists all jobs. All stop at the same gap of the whole round's value. The policy
weighs no costs: ``waiting_only`` states none, and solving anew would go on to optimise them.

Seconds are those of the wall clock and of the CPU, solver processes included. Every plan of the live cluster that is
compared is judged by the referee on the snapshot.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from placeopt import Engine, Instance, Plan, generate, violations
from placeopt.environment import usable_cores, versions
from placeopt.model import Weights

R = TypeVar("R")


def cpu_s(*engines: Engine) -> float:
    """Return the CPU seconds of this process and of the engines' solvers so far."""
    tick = os.sysconf("SC_CLK_TCK")
    total = time.process_time()
    for pid in (pid for engine in engines for pid in engine.solver_pids):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / tick
    return total


@dataclass
class Times:
    """Wall and CPU seconds of one kind of call."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def __call__(self, work: Callable[[], R], *engines: Engine) -> R:
        """Run ``work``, note its seconds and return what it does."""
        wall, cpu = time.perf_counter(), cpu_s(*engines)
        done = work()
        self.cpu.append(cpu_s(*engines) - cpu)
        self.wall.append(time.perf_counter() - wall)
        return done

    def cells(self) -> str:
        """Median and 95th percentile of the wall clock, and of the CPU."""
        figures = [np.percentile(seconds, share) for seconds in (self.wall, self.cpu) for share in (50, 95)]
        return " | ".join(f"{figure:.2f}" for figure in figures)


def instance_of(spec: str, nodes: int, seed: int) -> Instance:
    """Make a round with about as much demand as room, and no weight on costs."""
    made = generate(spec, jobs=8 * nodes, nodes=nodes, gpus=8, seed=seed)
    weights = Weights(**dict.fromkeys(Weights.model_fields, 0))
    return made.model_copy(update={"policy": made.policy.model_copy(update={"weights": weights})})


def fill(engine: Engine, instance: Instance, waiting: int) -> None:
    """Load the round, let greedy start what it can, and leave some of the other jobs."""
    engine.load(instance)
    started = engine.place(method="stranding", brief=True, warm=False, prove=False, explain=False, time_limit_s=600)
    engine.commit(started)
    running = {held.job for held in engine.snapshot.running}
    left = [job.id for job in instance.jobs if job.id not in running]
    engine.update(remove_jobs=left[waiting:])


class Rounds:
    """The rounds of one cluster, and what they took."""

    def __init__(self, instance: Instance, options: argparse.Namespace) -> None:
        self.options, self.rng = options, np.random.default_rng(options.seed)
        self.live, self.anew = Engine(), Engine()
        fill(self.live, instance, options.waiting)
        half = options.changes // 2
        spec = instance.name.split("-")[0]
        more = generate(spec, jobs=half * options.rounds, nodes=64, gpus=8, seed=options.seed + 1)
        self.arrivals = [job for job in more.jobs if not job.id.startswith("run-")]
        self.runs = [held.job for held in self.live.snapshot.running]
        self.nodes = [node.id for node in instance.cluster.nodes]
        self.drained: list[str] = []
        self.update, self.place, self.commit, self.fresh, self.whole = Times(), Times(), Times(), Times(), Times()
        self.started: list[int] = []
        self.gap: list[int] = []
        self.rows: list[str] = []

    def change(self, number: int) -> None:
        """Let jobs end and arrive, and drain a node now and then."""
        half = self.options.changes // 2
        for at in sorted(self.rng.choice(len(self.runs), half, replace=False).tolist(), reverse=True):
            self.live.release(self.runs.pop(at))
        nodes: dict[str, str] = {}
        if number % 10 == 9:
            nodes = dict.fromkeys(self.drained, "undrain")
            self.drained = [self.nodes[int(self.rng.integers(len(self.nodes)))]]
            nodes.update(dict.fromkeys(self.drained, "drain"))
        came = self.arrivals[half * number : half * (number + 1)]
        named = [job.model_copy(update={"id": f"r{number:03d}-{job.id}"}) for job in came]
        self.live.update(add_jobs=named, nodes=nodes)  # type: ignore[arg-type]  # literals in a plain dict

    def run(self, number: int) -> None:
        """Change the cluster, place, compare every so often, and commit."""
        how = {"time_limit_s": self.options.limit, "gap": self.options.gap}
        anew = how | {"time_limit_s": self.options.anew_limit}
        self.update(lambda: self.change(number))
        plan = self.place(lambda: self.live.place(waiting_only=True, **how), self.live)
        if number % self.options.anew_every == self.options.anew_every // 2:
            self.compare(number, plan, anew)
        self.commit(lambda: self.live.commit(plan))
        self.runs += [held.job for held in plan.placements]
        level = plan.levels[0]
        self.started.append(len(plan.placements))
        self.gap.append((level.bound or 0) - level.objective)

    def compare(self, number: int, plan: Plan, how: dict[str, float]) -> None:
        """Solve the snapshot anew and by ``place()``, and note all values and bounds."""
        snapshot = self.live.snapshot
        assert violations(snapshot, plan) == []
        fresh = self.fresh(lambda: self.anew.solve(snapshot, **how), self.anew)
        whole = self.whole(lambda: self.live.place(warm=False, **how), self.live)
        worth = {job.id: {option.id: option.value for option in job.options} for job in snapshot.jobs}
        held = sum(worth[entry.job][entry.option] for entry in snapshot.running)
        cells = [f"{plan.levels[0].objective:,} | {plan.levels[0].bound:,}"]
        cells += [f"{p.levels[0].objective - held:,} | {(p.levels[0].bound or 0) - held:,}" for p in (fresh, whole)]
        seconds = " | ".join(f"{times.wall[-1]:.2f}" for times in (self.place, self.fresh, self.whole))
        self.rows.append(f"| {number} | {len(plan.asked or ())} | {' | '.join(cells)} | {seconds} |")
        sys.stderr.write(self.rows[-1] + "\n")

    def table(self) -> list[str]:
        """Write what was measured."""
        ratio = np.median(self.fresh.cpu) / np.median(self.place.cpu)
        return [
            "| call | median, s | p95 | median CPU, s | p95 |",
            "|---|---|---|---|---|",
            f"| the changes (`release`, `update`) | {self.update.cells()} |",
            f"| `place(waiting_only=True)` | {self.place.cells()} |",
            f"| `commit` | {self.commit.cells()} |",
            f"| `place()` on the same state | {self.whole.cells()} |",
            f"| `solve` of the snapshot | {self.fresh.cells()} |",
            "",
            f"Solving anew takes {ratio:.0f} times the CPU of a live round. Medians: a round starts "
            f"{np.median(self.started):.0f} jobs, and its bound is {np.median(self.gap):,.0f} above its value (most: "
            f"{max(self.gap):,}; 0 in {self.gap.count(0)} of {len(self.gap)} rounds).",
            "",
            "Value and bound of the waiting jobs, and seconds of the wall clock, by `place(waiting_only=True)`, by "
            "solving anew and by `place()`:",
            "",
            "| round | waiting | value | bound | anew | bound | `place()` | bound | s | s anew | s `place()` |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *self.rows,
        ]


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=12_500)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--waiting", type=int, default=5_000)
    parser.add_argument("--anew-every", type=int, default=20)
    parser.add_argument("--limit", type=float, default=3.0, help="seconds of a round of the live cluster")
    parser.add_argument("--anew-limit", type=float, default=30.0, help="seconds of a round solved anew, or by place()")
    parser.add_argument("--gap", type=float, default=2e-5)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--specs", default="uniform,varied")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    arguments = " ".join(
        f"--{name.replace('_', '-')} {value}" for name, value in vars(options).items() if name != "out"
    )
    lines = [
        "# Rounds of a cluster that stays",
        "",
        f"`python bench/resident_rounds.py {arguments}`, {usable_cores()} cores, Python {platform.python_version()}, "
        f"{known}.",
    ]
    for spec in options.specs.split(","):
        instance = instance_of(spec, options.nodes, options.seed)
        rounds = Rounds(instance, options)
        with rounds.live, rounds.anew:
            rounds.live.start()
            rounds.anew.start()
            running = len(rounds.runs)
            for number in range(options.rounds):
                rounds.run(number)
            title = f"## `{instance.name}`: {running:,} running jobs on {options.nodes * 8:,} GPUs"
            lines += ["", title, "", *rounds.table()]
    text = "\n".join(lines) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
