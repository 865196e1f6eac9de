"""
Place or wait, replayed: ``python bench/postponing.py [--out FILE.md] [--artifact FOLDER]``.

The six jobs of SC'17's table 1 (the artifact's ``workloads-5``) on one Minsky, round by round: one at every arrival and
every end, each solved by ``placeopt.solve`` under the policies compared. Times are those that the artifact's authors
measured, and so is the rule: a job takes the longest of its time in a socket or across, and of its times beside each
neighbour that was ever in one of its sockets; nothing is prorated. Without a clock grid, times differ from the
artifact's by up to 1.1 s a step. A second table has one pair and one socket that becomes free sooner or later: waiting
pays up to a point, which only look-ahead sees. A third has random mixes of these kinds of jobs on five machines, and,
where the files of the artifact are at hand, a fourth its ``workloads-100``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from hand_instances import SC17_DISTANCES
from placeopt import Engine
from placeopt.model import (
    Assignment,
    Cluster,
    Communication,
    Demand,
    Instance,
    Job,
    Machine,
    Node,
    Option,
    Placement,
    Policy,
    Running,
    Slowdown,
    WorkerGpus,
)
from placeopt.model.policy import Interference, Postpone, Weights
from placeopt.topology.builders import minsky
from placeopt.workplace import usable_cores, versions

SOLO_MS = {"a1": 69_165, "a4": 109_435, "g1": 112_365, "a4-pair": 152_285, "a1-pair": 127_415}
"""AlexNet with batch 1 and 4, GoogLeNet with batch 1, on one GPU and, as pairs, on two of a socket."""
ACROSS_MS = {"a4-pair": 187_320, "a1-pair": 159_115}
BESIDE_MS = {
    ("a1", "a4"): 75_030,
    ("a1", "a4-pair"): 75_030,
    ("a4", "a1"): 114_860,
    ("a4", "a1-pair"): 114_860,
    ("a4", "g1"): 109_950,
    ("a4-pair", "a4-pair"): 201_400,
    ("a4-pair", "a1-pair"): 191_700,
    ("a1-pair", "a4-pair"): 172_080,
    ("a1-pair", "a1-pair"): 167_870,
}
"""Run time of the first beside the second; pairs without loss, or not measured, are left out."""
TABLE_1 = (
    ("0", "a1", 513, 300),
    ("1", "a4", 15_039, 300),
    ("2", "g1", 24_368, 300),
    ("3", "a4-pair", 25_333, 500),
    ("4", "a1-pair", 29_335, 500),
    ("5", "a1-pair", 29_894, 500),
)
"""Job, kind, arrival in ms, minimal utility in thousandths."""
MIXED, EVERY_MS = 40, 6_000
SLOWED = 1.1
COSTS = Weights(communication=334, interference=333, fragmentation=333)
POLICIES = {
    "first fit, first come": ("fcfs", Postpone()),
    "always place, best place": ("auto", Postpone()),
    "minimal utility": ("auto", Postpone(rule="utility")),
    "look-ahead": ("auto", Postpone(rule="lookahead")),
}


@dataclass(frozen=True)
class Times:
    """Run times in ms by kind of job: alone in a socket, alone across, the first beside the second; and its GPUs."""

    solo: dict[str, int]
    across: dict[str, int]
    beside: dict[tuple[str, str], int]
    gpus: dict[str, int]

    def slowdowns(self) -> tuple[Slowdown, ...]:
        """Return the excesses of jobs that meet in a socket."""
        return tuple(
            Slowdown(profile=one, beside=other, socket_thousandths=max(0, round(1000 * ms / self.solo[one]) - 1000))
            for (one, other), ms in self.beside.items()
        )


@dataclass
class Run:
    """A job that runs: where, since when, and how long it takes as far as is known."""

    placement: Placement
    start_ms: int
    length_ms: int

    @property
    def end_ms(self) -> int:
        """When it ends."""
        return self.start_ms + self.length_ms

    @property
    def sockets(self) -> set[tuple[str, int]]:
        """Sockets in which it has a GPU."""
        return {(held.node, int(gpu) // 2) for held in self.placement.assignments for gpu in held.gpus}


@dataclass
class Replay:
    """Minskys, their clock and their jobs."""

    jobs: dict[str, Job]
    times: Times
    cluster: Cluster
    running: dict[str, Run] = field(default_factory=dict)
    done: dict[str, Run] = field(default_factory=dict)

    def play(self, engine: Engine, method: str, postpone: Postpone, last: frozenset[str]) -> None:
        """Hold a round at every arrival and end until the jobs ``last`` are done."""
        policy = Policy(
            share_mode="exclusive",
            order="fcfs",
            weights=COSTS,
            interference=Interference(model="worst"),
            postpone=postpone,
        )
        now = 0
        while not last <= self.done.keys():
            times = [job.arrival_ms for job in self.jobs.values()] + [run.end_ms for run in self.running.values()]
            now = min(time for time in times if time > now)
            for name in [name for name, run in self.running.items() if run.end_ms <= now]:
                self.done[name] = self.running.pop(name)
            waiting = [job for job in self.jobs.values() if job.arrival_ms <= now and not self._started(job.id)]
            if waiting:
                self._round(engine, method, policy, now, waiting)

    def _started(self, name: str) -> bool:
        return name in self.running or name in self.done

    def _round(self, engine: Engine, method: str, policy: Policy, now: int, waiting: list[Job]) -> None:
        held = tuple(
            Running(**dict(run.placement), started_ms=run.start_ms, expected_end_ms=run.end_ms)
            for run in self.running.values()
        )
        here = [self.jobs[name] for name in self.running] + waiting
        round_ = Instance(
            name="replay",
            now_ms=now,
            cluster=self.cluster,
            jobs=tuple(here),
            running=held,
            slowdowns=self.times.slowdowns(),
            policy=policy,
        )
        plan = engine.solve(round_, method=method, time_limit_s=10, deterministic=True)
        times = self.times
        for placement in plan.placements:
            if not self._started(placement.job):
                kind, run = kind_of(self.jobs[placement.job]), Run(placement, now, 0)
                run.length_ms = times.solo[kind] if len(run.sockets) == 1 else times.across.get(kind, times.solo[kind])
                self.running[placement.job] = run
        for name, run in self.running.items():
            beside = [
                times.beside.get((kind_of(self.jobs[name]), kind_of(self.jobs[other])), 0)
                for other, neighbour in self.running.items()
                if other != name and neighbour.sockets & run.sockets
            ]
            run.length_ms = max([run.length_ms, *beside])

    def summary(self) -> Summary:
        """Sum up a replay that has ended."""
        waits = [run.start_ms - self.jobs[job].arrival_ms for job, run in self.done.items()]
        slow = [run.length_ms / self.times.solo[kind_of(self.jobs[job])] for job, run in self.done.items()]
        return Summary(
            last_end_s=max(run.end_ms for run in self.done.values()) / 1000,
            wait_s=fmean(waits) / 1000,
            longest_wait_s=max(waits) / 1000,
            slowdown=fmean(slow),
            slowed=sum(one > SLOWED for one in slow),
        )


class Summary(NamedTuple):
    """How a replay went; ``slowed`` counts jobs that took 10 % longer than alone in a socket."""

    last_end_s: float
    wait_s: float
    longest_wait_s: float
    slowdown: float
    slowed: float

    def cells(self) -> str:
        """Return the figures as cells of a table."""
        slowed = f"{self.slowed:.0f}" if self.slowed == int(self.slowed) else f"{self.slowed:.1f}"
        return f"{self.last_end_s:.1f} | {self.wait_s:.1f} | {self.longest_wait_s:.1f} | {self.slowdown:.3f} | {slowed}"


def kind_of(job: Job) -> str:
    """Key of the tables of times."""
    return job.profile or ""


def job_of(times: Times, name: str, kind: str, arrival_ms: int, least: int) -> Job:
    """Make a job of a kind; its worth is its GPUs, so nobody is preferred."""
    gpus = times.gpus[kind]
    spread = round(1000 * times.across[kind] / times.solo[kind]) - 1000 if kind in times.across else 0
    return Job(
        id=name,
        arrival_ms=arrival_ms,
        options=(Option(demand=Demand(gpus=gpus), value=1000 * gpus, run_time_ms=times.solo[kind]),),
        communication=Communication(weight=1 if gpus > 1 else 0, spread_slowdown_thousandths=max(0, spread)),
        profile=kind,
        utility_min_thousandths=least,
    )


def minskys(number: int) -> Cluster:
    """Return so many machines with the distances of SC'17's scenarios."""
    return Cluster(
        machines=(Machine(**(dict(minsky()) | {"gpu_distance_matrix": SC17_DISTANCES})),),
        nodes=tuple(Node(id=f"minsky-{i}", machine="minsky") for i in range(number)),
    )


MEASURED = Times(SOLO_MS, ACROSS_MS, BESIDE_MS, {kind: 2 if kind in ACROSS_MS else 1 for kind in SOLO_MS})


def table_1() -> Replay:
    """Return the six jobs, to be played."""
    jobs = {name: job_of(MEASURED, name, kind, arrival, least) for name, kind, arrival, least in TABLE_1}
    return Replay(jobs, MEASURED, minskys(1))


def mix(seed: int) -> Replay:
    """Return ``MIXED`` jobs of random kinds on five machines, one every ``EVERY_MS`` on the average."""
    dice, clock, jobs = random.Random(seed), 0.0, {}
    for i in range(MIXED):
        clock += dice.expovariate(1 / EVERY_MS)
        kind = dice.choice(sorted(SOLO_MS))
        jobs[str(i)] = job_of(MEASURED, str(i), kind, 1 + int(clock), 500 if kind in ACROSS_MS else 300)
    return Replay(jobs, MEASURED, minskys(5))


def artifact(folder: Path, most: int) -> Replay:
    """Return the first jobs of the artifact's ``workloads-100`` on five machines, with the times of its profile."""
    profile = json.loads((folder / "profiles" / "prof_from_experiments.json").read_text(encoding="utf-8"))
    listed = json.loads((folder / "workloads-100.json").read_text(encoding="utf-8"))
    solo, across, beside, gpus = {}, {}, {}, {}
    for model, sizes in profile["solo"].items():
        for size, measured in sizes.items():
            for number, ms in measured["num_gpus"].items():
                kind = f"{model}-{size}-{number}"
                gpus[kind], solo[kind] = int(number), round(1000 * ms["intra-socket"])
                if ms["inter-socket"]:
                    across[kind] = round(1000 * ms["inter-socket"])
    for one, two in itertools.product(solo, solo):
        (model, size, number), (other, other_size, others) = one.rsplit("-", 2), two.rsplit("-", 2)
        found = profile["collocation"].get(model, {}).get(size, {}).get("num_gpus", {}).get(number, {})
        ms = found.get(other, {}).get(other_size, {}).get("num_gpus", {}).get(others, 0)
        if ms:
            beside[one, two] = round(1000 * ms)
    times = Times(solo, across, beside, gpus)
    jobs = {
        name: job_of(
            times,
            name,
            f"{job['type']}-{job['size']}-{job['gpus']}",
            1000 * job["arrival"],
            round(1000 * job["minimal_utility"]),
        )
        for name, job in list(listed.items())[:most]
    }
    return Replay(jobs, times, minskys(5))


def one_pair(engine: Engine, method: str, postpone: Postpone, free_after_ms: int) -> int:
    """Return when a pair ends that finds a GPU free in each socket, one of which is whole after ``free_after_ms``."""
    replay = Replay({"pair": job_of(MEASURED, "pair", "a1-pair", 1, 500)}, MEASURED, minskys(1))
    for name, gpu, length in (("short", 0, free_after_ms), ("long", 2, 10_000_000)):
        replay.jobs[name] = job_of(MEASURED, name, "g1", 0, 0)
        held = Assignment(node="minsky-0", gpus={str(gpu): 1000}, workers=(WorkerGpus(rank=0, gpus=(gpu,)),))
        replay.running[name] = Run(Placement(job=name, option="default", assignments=(held,)), 0, length)
    replay.play(engine, method, postpone, frozenset({"pair"}))
    return replay.done["pair"].end_ms


def summaries(engine: Engine, make: Callable[[], list[Replay]]) -> list[str]:
    """Return a row for each policy: means over the replays that ``make`` returns."""
    lines = list(HEADER)
    for name, (method, postpone) in POLICIES.items():
        found = []
        for replay in make():
            replay.play(engine, method, postpone, frozenset(replay.jobs))
            found.append(replay.summary())
        lines.append(f"| {name} | {Summary(*map(fmean, zip(*found, strict=True))).cells()} |")
    return lines


def pairs(engine: Engine) -> list[str]:
    """Return the table of one pair."""
    ends = (5_000, 20_000, 40_000, 80_000, 300_000)
    lines = ["| policy | " + " | ".join(f"{end // 1000}" for end in ends) + " |", "|---|" + "---:|" * len(ends)]
    for name, (method, postpone) in POLICIES.items():
        found = [f"{one_pair(engine, method, postpone, end) / 1000:.1f}" for end in ends]
        lines.append(f"| {name} | {' | '.join(found)} |")
    return lines


HEADER = (
    "| policy | last end | wait, mean | wait, longest | slowdown, mean | jobs slowed by more than 10 % |",
    "|---|---:|---:|---:|---:|---:|",
)


def main() -> int:
    """Replay and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the tables here as well")
    parser.add_argument("--seeds", type=int, default=4, help="random mixes of jobs")
    parser.add_argument("--artifact", type=Path, help="folder with the workloads and profiles of SC'17's artifact")
    parser.add_argument("--jobs", type=int, default=100, help="of its workloads-100, the first ones")
    arguments = parser.parse_args()
    command = f"python bench/postponing.py --seeds {arguments.seeds}"
    if arguments.artifact is not None:
        command += f" --artifact FOLDER --jobs {arguments.jobs}"
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "# Place or wait",
        "",
        f"`{command}`, {usable_cores()} cores, Python "
        f"{platform.python_version()}, {known}. Seconds of the replay; every round deterministic.",
        "",
        "The six jobs of SC'17's table 1 on one Minsky. The authors' artifact ends at 440.0 (first come; best fit), "
        "433.4 (TOPO-AWARE) and 396.0 (TOPO-AWARE-P), on its grid of 1.1 s.",
        "",
    ]
    with Engine() as engine:
        lines += summaries(engine, lambda: [table_1()])
        lines += ["", "One pair (127.4 s in a socket, 159.1 across), a GPU free in each socket; one socket is whole "]
        lines[-1] += "after so many seconds: when the pair ends."
        lines += ["", *pairs(engine), ""]
        lines += [
            f"{MIXED} jobs of these kinds, drawn at random, on five Minskys; means of {arguments.seeds} seeds.",
            "",
        ]
        lines += summaries(engine, lambda: [mix(seed) for seed in range(arguments.seeds)])
        if arguments.artifact is not None:
            lines += [
                "",
                f"The first {arguments.jobs} jobs of the artifact's workloads-100 on five Minskys. The artifact, ",
            ]
            lines[-1] += (
                "repaired of its double booking, ends all 100 at 1425.6 (first come), 1458.6 (best fit), 1338.7 "
            )
            lines[-1] += (
                "(TOPO-AWARE) and 1320.0 or 1344.2 (TOPO-AWARE-P), with mean waits of 99.5, 48.2, 35.2 and 32.5 "
            )
            lines[-1] += "or 33.1, and 16, 20, 4 and 0 jobs slowed by more than 10 %."
            lines += ["", *summaries(engine, lambda: [artifact(arguments.artifact, arguments.jobs)])]
    text = "\n".join([*lines, ""])
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
