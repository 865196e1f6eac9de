"""
The same list of jobs through ``placeopt slurm run`` and through Slurm's own backfill, each on a real Slurm of its own.

60 jobs of 12 shapes come within 15 s and run for 3 to 15 s; node g8 is drained from the beginning, and a node is killed
after 10 s. Jobs are submitted at the same seconds to both; those for placeopt with a hold. Where a job was to run is
read from its admin comment, where it ran from squeue, both after the end and once no node has to report any more: a
job that is COMPLETING is listed without the nodes that have (``man squeue``, %N). Faults: a job ran elsewhere than its
note says, a start was refused, or a job did not end. Needs root, slurm-wlm and munge.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from statistics import mean, median
from typing import Any

from campaigns.harness import Campaign, Case
from helpers.slurm_lab import GPU_NODES, SlurmLab, slurm_lab, why_no_lab
from placeopt.drivers.slurm import read_note
from placeopt.formats.slurm import expand_hosts

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
EVERY_S = 1.0
"""Between rounds."""
STANDSTILL_S = 3.0
"""A run in which this process stood still for longer is not counted: somebody stopped it, and Slurm went on."""


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


def cases(seed: int) -> Iterator[Case]:
    """Run one list after the other, by both."""
    for number in count(seed):
        for name, every_s in (("backfill", None), ("placeopt", EVERY_S)):
            run = run_once(number, every_s, "jobs", LONGEST_S)
            if run.stood_still_s > STANDSTILL_S:
                yield Case(f"{name}, stood still")
                continue
            figures = {f"{name}_wait_s": mean(run.waits_s or [0]), f"{name}_gpu_use": run.gpu_use}
            figures |= {f"{name}_end_s": run.ended_s, f"{name}_starts": run.starts}
            if every_s is not None:
                figures |= {"as_planned": run.as_planned, "round_s": median(run.round_s or [0])}
            yield Case(name, [f"seed {number}, {name}: {fault}" for fault in run.faults], figures)


CAMPAIGN = Campaign("does every job of a real Slurm run where its note says?", cases, 10, 60, missing=why_no_lab)
