"""
The same list of jobs through ``placeopt slurm run`` and through Slurm's own backfill, each on a real Slurm of its own.

Usage: ``python tests/campaigns/slurm_run.py [--seeds 0-4] [--every 1] [--worth jobs|gpus] [--jobs N] [--out FILE.md]``.
60 jobs of 12 shapes come within 15 s and run for 3 to 15 s; node g8 is drained from the beginning, and a node is killed
after 10 s. Jobs are submitted at the same seconds to both; those for placeopt with a hold. Where a job was to run is
read from its admin comment, where it ran from squeue, both after the end and once no node has to report any more: a
job that is COMPLETING is listed without the nodes that have (``man squeue``, %N). Exit code 1 if a job ran elsewhere
than its note says, a start was refused, or a job did not end. Needs root, slurm-wlm and munge.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import placeopt
from helpers.slurm_lab import GPU_NODES, SlurmLab, slurm_lab, why_no_lab
from placeopt.drivers.slurm.note import read_note
from placeopt.environment import usable_cores
from placeopt.formats.slurm.fields import expand_hosts

SHAPES: dict[str, tuple[str, ...]] = {
    "gang of 2 whole nodes": ("-N2", "--gres=gpu:a100:8", "--ntasks-per-node=8", "-c4", "--mem=200G"),
    "gang of 3 half nodes": ("-N3", "--gres=gpu:a100:4", "-c8", "--mem=100G"),
    "range of 2 to 3 nodes": ("-N2-3", "--gres=gpu:a100:4", "-c4", "--mem=50G"),
    "one GPU a task": ("-n6", "--gpus-per-task=a100:1", "-c4", "--mem-per-cpu=1G"),
    "GPUs of a job": ("-N1", "--gpus=a100:6", "--cpus-per-gpu=4", "--mem-per-gpu=10G"),
    "one GPU": ("-N1", "--gres=gpu:a100:1", "-c4", "--mem=30G"),
    "half a node": ("-N1", "--gres=gpu:4", "-C", "a100", "-c8", "--mem=100G"),
    "exclusive node": ("-N1", "--exclusive", "--gres=gpu:2", "-C", "a100"),
    "array, two at once": ("--array=0-3%2", "-N1", "--gres=gpu:l40s:2", "-c4", "--mem=20G"),
    "two L40S nodes": ("-N2", "--gres=gpu:l40s:4", "-c4", "--mem=50G"),
    "MIG instances": ("-N1", "--gres=gpu:a100_1g.5gb:2", "-c2", "--mem=8G"),
    "CPUs": ("-p", "cpu", "-N1", "-n20", "--mem-per-cpu=1G"),
}
GPUS = dict(zip(SHAPES, (8, 4, 4, 0, 6, 1, 4, 8, 2, 4, 2, 0), strict=True))
"""On each node; of the tasks with a GPU each, six in all."""
NUM_JOBS = 60
ARRIVE_S, RUN_S = 15.0, (3.0, 15.0)
KILL_AFTER_S = 10.0
DRAINED = "g8"
LONGEST_S = 240.0
SETTLE_S = 30.0
"""How long nodes have, after the last job, to report that what ran on them has ended."""
HEADER = (
    *("seed", "scheduler", "starts", "as planned", "refused", "taken back", "requeued by Slurm"),
    *("mean wait, s", "longest", "last end, s", "GPU use", "round, median s"),
)
STANDSTILL_S = 3.0
"""A run in which this process stood still for longer is repeated: somebody stopped it, and Slurm went on."""


@dataclass(frozen=True)
class Submission:
    """One submission: when, of which shape, and for how long it runs."""

    at_s: float
    shape: str
    run_s: float


@dataclass
class Run:
    """What one run gave. ``faults``: What must not be."""

    waits_s: list[float] = field(default_factory=list)
    ended_s: float = 0.0
    gpu_use: float = 0.0
    starts: int = 0
    as_planned: int = 0
    requeued: int = 0
    refused: int = 0
    taken_back: int = 0
    untimed: int = 0
    """Jobs that ran but of which Slurm states no start; they count in no wait and no GPU use."""
    round_s: list[float] = field(default_factory=list)
    actions: dict[str, list[str]] = field(default_factory=dict)
    """Of each job, what the driver did, and with what result."""
    stood_still_s: float = 0.0
    faults: list[str] = field(default_factory=list)


def workload(seed: int) -> tuple[list[Submission], str]:
    """Return the submissions of a seed, each shape five times, and the node that is killed."""
    dice = random.Random(seed)
    shapes = list(SHAPES) * (NUM_JOBS // len(SHAPES))
    dice.shuffle(shapes)
    jobs = [Submission(dice.uniform(0, ARRIVE_S), shape, dice.uniform(*RUN_S)) for shape in shapes]
    return sorted(jobs, key=lambda job: job.at_s), dice.choice([node for node in GPU_NODES if node != DRAINED])


def run_once(seed: int, every_s: float | None, worth: str, longest_s: float) -> Run:
    """Run a list: ``every_s`` None through backfill, otherwise through placeopt."""
    jobs, victim = workload(seed)
    run = Run()
    with slurm_lab(scheduler="bf_interval=3,bf_resolution=1,batch_sched_delay=0") as lab:
        lab.run("scontrol", "update", f"NodeName={DRAINED}", "State=DRAIN", "Reason=campaign")
        driver = None if every_s is None else start_driver(lab, every_s, worth, run)
        began = time.time()
        over = threading.Event()
        threading.Thread(target=watch_clock, args=(run, over), daemon=True).start()
        killer = threading.Timer(KILL_AFTER_S, lab.kill_node, (victim,))
        killer.start()
        for job in jobs:
            time.sleep(max(0.0, began + job.at_s - time.time()))
            lab.submit(
                "--time=2", *SHAPES[job.shape], f"--job-name={job.shape}", seconds=job.run_s, held=driver is not None
            )
        while (left := in_states(lab, "PENDING,RUNNING")) and time.time() < began + longest_s:
            time.sleep(0.5)
        settled_by = time.time() + SETTLE_S
        while in_states(lab, "COMPLETING") and time.time() < settled_by:
            time.sleep(0.5)
        over.set()
        killer.join()
        if left:
            run.faults.append(f"{len(left)} jobs have not ended: {', '.join(left[:5])}")
        if driver is not None:
            time.sleep(every_s or 0)
            driver.send_signal(signal.SIGTERM)
            if (code := driver.wait(30)) != 143:
                run.faults.append(f"the driver ended with {code}")
        if run.refused:
            run.faults.append(f"{run.refused} starts were refused")
        account(lab, run, began, planned=driver is not None)
    return run


def watch_clock(run: Run, over: threading.Event) -> None:
    """Note how long this process has stood still at most."""
    last = time.time()
    while not over.wait(0.2):
        now = time.time()
        run.stood_still_s = max(run.stood_still_s, now - last)
        last = now


def start_driver(lab: SlurmLab, every_s: float, worth: str, run: Run) -> subprocess.Popen[str]:
    """Start the command, and read its lines."""
    options = ["--every", f"{every_s:g}s", "--worth", worth, "--json"]
    command = [sys.executable, "-m", "placeopt.cli", "slurm", "run", *options]
    driver = subprocess.Popen(command, env=lab.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def listen() -> None:
        for line in driver.stdout or ():
            record = json.loads(line)
            run.round_s.append(record["seconds"])
            for action in record["actions"]:
                did = f"{len(run.round_s)} {action['do']} {action['result']}"
                run.actions.setdefault(str(action.get("job")), []).append(did)
                run.refused += action["result"] == "refused"
                run.taken_back += action["do"] in ("take-back", "give-up") and action["result"] == "done"

    def complain() -> None:
        for line in driver.stderr or ():
            if "Traceback" in line or "error:" in line:
                run.faults.append(line.strip())

    for target in (listen, complain):
        threading.Thread(target=target, daemon=True).start()
    return driver


def in_states(lab: SlurmLab, states: str) -> list[str]:
    """Return the jobs in these states; one whose nodes have not all reported its end is COMPLETING, not RUNNING."""
    return lab.run("squeue", "--noheader", "--array", f"--states={states}", "--format=%i").split()


def account(lab: SlurmLab, run: Run, began: float, *, planned: bool) -> None:
    """Read from Slurm what became of all jobs."""
    listed: list[dict[str, Any]] = json.loads(lab.run("squeue", "--json"))["jobs"]
    gpu_seconds, last = 0.0, began
    for job in listed:
        if job["job_state"] not in ("COMPLETED", "COMPLETING"):
            told = f"{job['state_reason']}, {job['state_description']!r}, {job['admin_comment']}"
            told += f", {run.actions.get(str(job['job_id']), 'no action')}"
            run.faults.append(f"job {job['job_id']} ({job['name']}) ended {job['job_state']}: {told}")
            continue
        run.starts += 1
        run.requeued += job["restart_cnt"]
        if planned:
            note = read_note(job["admin_comment"])
            if note is not None and note.kind == "start" and ran_on(job, set(note.nodes)):
                run.as_planned += 1
            else:
                run.faults.append(f"job {job['job_id']} ({job['name']}) ran on {job['nodes']}: {job['admin_comment']}")
        if not job["start_time"]:  # Slurm forgets it where a job was requeued as its node went
            run.untimed += 1
            continue
        run.waits_s.append(job["start_time"] - job["submit_time"])
        last = max(last, job["end_time"])
        gpus = GPUS[job["name"]] * len(expand_hosts(job["nodes"])) or job["tasks"] * (job["name"] == "one GPU a task")
        gpu_seconds += gpus * (job["end_time"] - job["start_time"])
    run.ended_s = last - began
    run.gpu_use = gpu_seconds / (run.ended_s * (8 * 7 + 4 * 4 + 6 + 2)) if run.ended_s else 0.0


def ran_on(job: dict[str, Any], planned: set[str]) -> bool:
    """Return whether a job ran on these nodes; one that is COMPLETING is listed on those alone that still have it."""
    listed = set(expand_hosts(job["nodes"]))
    return listed <= planned if job["job_state"] == "COMPLETING" else listed == planned


def report(results: dict[tuple[int, str], Run], arguments: argparse.Namespace, version: str) -> str:
    """Return the page."""
    command = f"python tests/campaigns/slurm_run.py {' '.join(sys.argv[1:])}"
    lines = [
        "# A real Slurm: `placeopt slurm run` beside backfill",
        "",
        f"`{command}`, {version}, Python {sys.version.split()[0]}, placeopt {placeopt.__version__}, {usable_cores()} "
        f"cores, rounds every {arguments.every:g} s, {time.strftime('%Y-%m-%d', time.gmtime())}.",
        "",
        f"16 nodes on loopback (g8 drained from the beginning, one node killed after {KILL_AFTER_S:g} s), {NUM_JOBS} "
        f"submissions of {len(SHAPES)} shapes within {ARRIVE_S:g} s, run times {RUN_S[0]:g} to {RUN_S[1]:g} s, "
        "all with a time limit of 2 min. Starts count tasks of arrays. GPU use: GPU-seconds of the last start of each "
        "job, of all GPUs that were up at the beginning, until the last end. Backfill: `bf_interval=3`.",
        "",
        f"| {' | '.join(HEADER)} |",
        "|" + "---|" * len(HEADER),
    ]
    for (seed, name), run in results.items():
        rounds = sorted(run.round_s)
        planned = (run.as_planned, run.refused, run.taken_back) if name == "placeopt" else ("", "", "")
        cells = (
            *(seed, name, run.starts, *planned, run.requeued, f"{mean(run.waits_s or [0]):.1f}"),
            *(f"{max(run.waits_s or [0]):.0f}", f"{run.ended_s:.0f}", f"{100 * run.gpu_use:.1f} %"),
            f"{rounds[len(rounds) // 2]:.2f}" if rounds else "",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    for name in ("backfill", "placeopt"):
        runs = [run for (_, other), run in results.items() if other == name]
        if runs:
            wait, use = mean(mean(run.waits_s or [0]) for run in runs), mean(run.gpu_use for run in runs)
            end = mean(run.ended_s for run in runs)
            cells = (
                "mean",
                name,
                sum(run.starts for run in runs),
                *[""] * 4,
                f"{wait:.1f}",
                "",
                f"{end:.0f}",
                f"{100 * use:.1f} %",
                "",
            )
            lines.append(f"| {' | '.join(map(str, cells))} |")
    untimed = sum(run.untimed for run in results.values())
    if untimed:
        lines += [
            "",
            f"Of {untimed} jobs that were requeued Slurm states no start: they count in no wait and no GPU use.",
        ]
    faults = [f"- seed {seed}, {name}: {fault}" for (seed, name), run in results.items() for fault in run.faults]
    lines += ["", *(faults or ["No job ran elsewhere than its note says, was lost, or did not end."]), ""]
    return "\n".join(lines)


def parse_seeds(text: str) -> Sequence[int]:
    """Return the seeds of ``0-4`` or ``3``."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> int:
    """Run the campaign and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--seeds", type=parse_seeds, default=range(5), help="such as 0-4")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between rounds")
    parser.add_argument("--worth", choices=("jobs", "gpus"), default="jobs")
    parser.add_argument("--only", choices=("backfill", "placeopt"))
    parser.add_argument("--longest", type=float, default=LONGEST_S, help="seconds after which a run is given up")
    parser.add_argument("--repeats", type=int, default=5, help="most runs of a seed, where this process stood still")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--out", type=Path, help="write the page here as well")
    arguments = parser.parse_args()
    if (reason := why_no_lab()) is not None:
        print(reason)
        return 2
    version = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S607
    wanted = [
        (seed, name) for seed in arguments.seeds for name in ("backfill", "placeopt") if arguments.only in (None, name)
    ]

    def one(key: tuple[int, str]) -> Run:
        every_s = arguments.every if key[1] == "placeopt" else None
        for _ in range(arguments.repeats):
            run = run_once(key[0], every_s, arguments.worth, arguments.longest)
            if run.stood_still_s <= STANDSTILL_S:
                break
            print(f"seed {key[0]} {key[1]}: stood still for {run.stood_still_s:.0f} s, once more", flush=True)
        print(
            f"seed {key[0]} {key[1]}: mean wait {mean(run.waits_s or [0]):.1f} s, faults {Counter(run.faults)}",
            flush=True,
        )
        return run

    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = dict(zip(wanted, pool.map(one, wanted), strict=True))
    text = report(results, arguments, version)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text)
    return 1 if any(run.faults for run in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
