"""
Place or wait, replayed: ``python bench/postponing.py [--out FILE.md]``.

The six jobs of SC'17's table 1 (the artifact's ``workloads-5``) on one Minsky, round by round: one at every arrival and
every end, each solved by ``placeopt.solve`` under the policies compared. Times are those that the artifact's authors
measured, and so is the rule: a job takes the longest of its time in a socket or across, and of its times beside each
neighbour that was ever in one of its sockets; nothing is prorated. Without a clock grid, times differ from the
artifact's by up to 1.1 s a step. A second table has one pair and one socket that becomes free sooner or later: waiting
pays up to a point, which only look-ahead sees.
"""

from __future__ import annotations

import argparse
import platform
import sys
from dataclasses import dataclass, field
from pathlib import Path

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
COSTS = Weights(communication=334, interference=333, fragmentation=333)
POLICIES = {
    "first fit, first come": ("fcfs", Postpone()),
    "always place, best place": ("auto", Postpone()),
    "minimal utility": ("auto", Postpone(rule="utility")),
    "look-ahead": ("auto", Postpone(rule="lookahead")),
}


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
    def sockets(self) -> set[int]:
        """Sockets in which it has a GPU."""
        return {int(gpu) // 2 for assignment in self.placement.assignments for gpu in assignment.gpus}


@dataclass
class Replay:
    """One Minsky, its clock and its jobs."""

    jobs: dict[str, Job]
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
            cluster=CLUSTER,
            jobs=tuple(here),
            running=held,
            slowdowns=SLOWDOWNS,
            policy=policy,
        )
        plan = engine.solve(round_, method=method, time_limit_s=10, deterministic=True)
        for placement in plan.placements:
            if not self._started(placement.job):
                kind, run = kind_of(self.jobs[placement.job]), Run(placement, now, 0)
                run.length_ms = SOLO_MS[kind] if len(run.sockets) == 1 else ACROSS_MS[kind]
                self.running[placement.job] = run
        for name, run in self.running.items():
            beside = [
                BESIDE_MS.get((kind_of(self.jobs[name]), kind_of(self.jobs[other])), 0)
                for other, neighbour in self.running.items()
                if other != name and neighbour.sockets & run.sockets
            ]
            run.length_ms = max([run.length_ms, *beside])


def kind_of(job: Job) -> str:
    """Key of the tables of times."""
    return job.profile or ""


def job_of(name: str, kind: str, arrival_ms: int, least: int) -> Job:
    """Make a job of a kind; its worth is its GPUs, so nobody is preferred."""
    gpus = 2 if kind in ACROSS_MS else 1
    spread = round(1000 * ACROSS_MS[kind] / SOLO_MS[kind]) - 1000 if kind in ACROSS_MS else 0
    return Job(
        id=name,
        arrival_ms=arrival_ms,
        options=(Option(demand=Demand(gpus=gpus), value=1000 * gpus, run_time_ms=SOLO_MS[kind]),),
        communication=Communication(weight=1 if gpus > 1 else 0, spread_slowdown_thousandths=spread),
        profile=kind,
        utility_min_thousandths=least,
    )


CLUSTER = Cluster(
    machines=(Machine(**(dict(minsky()) | {"gpu_distance_matrix": SC17_DISTANCES})),),
    nodes=(Node(id="minsky-0", machine="minsky"),),
)
SLOWDOWNS = tuple(
    Slowdown(profile=one, beside=other, socket_thousandths=round(1000 * ms / SOLO_MS[one]) - 1000)
    for (one, other), ms in BESIDE_MS.items()
)


def table_1(engine: Engine, method: str, postpone: Postpone) -> Replay:
    """Replay the six jobs."""
    replay = Replay({name: job_of(name, kind, arrival, least) for name, kind, arrival, least in TABLE_1})
    replay.play(engine, method, postpone, frozenset(replay.jobs))
    return replay


def one_pair(engine: Engine, method: str, postpone: Postpone, free_after_ms: int) -> int:
    """Return when a pair ends that finds a GPU free in each socket, one of which is whole after ``free_after_ms``."""
    replay = Replay({"pair": job_of("pair", "a1-pair", 1, 500)})
    for name, gpu, length in (("short", 0, free_after_ms), ("long", 2, 10_000_000)):
        replay.jobs[name] = job_of(name, "g1", 0, 0)
        held = Assignment(node="minsky-0", gpus={str(gpu): 1000}, workers=(WorkerGpus(rank=0, gpus=(gpu,)),))
        replay.running[name] = Run(Placement(job=name, option="default", assignments=(held,)), 0, length)
    replay.play(engine, method, postpone, frozenset({"pair"}))
    return replay.done["pair"].end_ms


def main() -> int:
    """Replay and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the tables here as well")
    arguments = parser.parse_args()
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "# Place or wait",
        "",
        f"`python bench/postponing.py`, {usable_cores()} cores, Python {platform.python_version()}, {known}. Seconds "
        "of the replay; every round deterministic.",
        "",
        "The six jobs of SC'17's table 1 on one Minsky. The authors' artifact ends at 440.0 (first come; best fit), "
        "433.4 (TOPO-AWARE) and 396.0 (TOPO-AWARE-P), on its grid of 1.1 s.",
        "",
        "| policy | last end | wait, mean | wait, longest | slowdown, mean | pairs across |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    ends = (5_000, 20_000, 40_000, 80_000, 300_000)
    pairs = [
        "",
        "One pair (127.4 s in a socket, 159.1 across), a GPU free in each socket; one socket is whole after so many "
        "seconds: when the pair ends.",
        "",
        "| policy | " + " | ".join(f"{end // 1000}" for end in ends) + " |",
        "|---|" + "---:|" * len(ends),
    ]
    with Engine() as engine:
        for name, (method, postpone) in POLICIES.items():
            replay = table_1(engine, method, postpone)
            waits = [run.start_ms - replay.jobs[job].arrival_ms for job, run in replay.done.items()]
            slow = [run.length_ms / SOLO_MS[kind_of(replay.jobs[job])] for job, run in replay.done.items()]
            cells = [
                f"{max(run.end_ms for run in replay.done.values()) / 1000:.1f}",
                f"{sum(waits) / len(waits) / 1000:.1f}",
                f"{max(waits) / 1000:.1f}",
                f"{sum(slow) / len(slow):.3f}",
                f"{sum(len(run.sockets) > 1 for run in replay.done.values())}",
            ]
            lines.append(f"| {name} | {' | '.join(cells)} |")
            found = [f"{one_pair(engine, method, postpone, end) / 1000:.1f}" for end in ends]
            pairs.append(f"| {name} | {' | '.join(found)} |")
    text = "\n".join([*lines, *pairs, ""])
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
