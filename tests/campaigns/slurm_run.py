"""
Lists of jobs through ``placeopt slurm run`` on a real Slurm, under one policy after the other: each runs where its note
says.

60 jobs of 12 shapes come within 15 s and run for 3 to 15 s; node g8 is drained from the beginning, and a node is killed
after 10 s. Where a job was to run is read from its admin comment, where it ran from squeue, both after the end and once
no node has to report any more: a job that is COMPLETING is listed without the nodes that have (``man squeue``, %N).
Faults: a job ran elsewhere than its note says, a start was refused, or a job did not end. Needs root, slurm-wlm and
munge.
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
from itertools import count
from typing import Any

from campaigns.harness import Campaign, Case
from helpers.slurm_lab import GPU_NODES, SHAPES, SlurmLab, why_no_lab
from placeopt.drivers.slurm import read_note
from placeopt.importers.slurm import expand_hosts

NUM_JOBS, ARRIVE_S, RUN_S = 60, 15.0, (3.0, 15.0)
KILL_AFTER_S, LONGEST_S = 10.0, 240.0
DRAINED = "g8"
POLICIES = ("rounds", "placeopt", "topo-aware-p", "horus-f", "dynamoml", "soda", "genie")
"""Ours, and one of each paper."""
SETTLE_S = 30.0
"""How long nodes have, after the last job, to report that what ran on them has ended."""
STANDSTILL_S = 3.0
"""A run in which this process stood still for longer is not counted: somebody stopped it, and Slurm went on."""


class Run:
    """One list of jobs, and what must not be: ``faults``."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self.faults: list[str] = []
        self.starts = 0
        self.stood_still_s = 0.0
        self._actions: dict[str, list[str]] = {}

    def go(self, seed: int) -> None:
        """Submit the jobs, each shape five times, kill a node, and wait for the end."""
        dice = random.Random(seed)
        shapes = list(SHAPES) * (NUM_JOBS // len(SHAPES))
        dice.shuffle(shapes)
        jobs = sorted((dice.uniform(0, ARRIVE_S), shape, dice.uniform(*RUN_S)) for shape in shapes)
        victim = dice.choice([node for node in GPU_NODES if node != DRAINED])
        with SlurmLab("bf_interval=3,bf_resolution=1,batch_sched_delay=0") as lab:
            lab.run("scontrol", "update", f"NodeName={DRAINED}", "State=DRAIN", "Reason=campaign")
            driver = self._driver(lab)
            began, over = time.time(), threading.Event()
            threading.Thread(target=self._watch_clock, args=(over,), daemon=True).start()
            killer = threading.Timer(KILL_AFTER_S, lab.kill_node, (victim,))
            killer.start()
            for at_s, shape, run_s in jobs:
                time.sleep(max(0.0, began + at_s - time.time()))
                lab.submit("--time=2", *SHAPES[shape], f"--job-name={shape}", seconds=run_s)
            if left := _left(lab, "PENDING,RUNNING", LONGEST_S):
                self.faults.append(f"{len(left)} jobs have not ended: {', '.join(left[:5])}")
            _left(lab, "COMPLETING", SETTLE_S)
            over.set()
            killer.join()
            time.sleep(1)  # for a last round
            driver.send_signal(signal.SIGTERM)
            if (code := driver.wait(30)) != 143:
                self.faults.append(f"the driver ended with {code}")
            for job in json.loads(lab.run("squeue", "--json"))["jobs"]:
                self._judge(job)

    def _watch_clock(self, over: threading.Event) -> None:
        last = time.time()
        while not over.wait(0.2):
            self.stood_still_s, last = max(self.stood_still_s, time.time() - last), time.time()

    def _driver(self, lab: SlurmLab) -> subprocess.Popen[str]:
        """Start the command, and read its lines."""
        command = [sys.executable, "-m", "placeopt.cli", "slurm", "run", "--every", "1s", "--worth", "jobs", "--json"]
        command += ["--policy", self._policy]
        driver = subprocess.Popen(command, env=lab.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def listen() -> None:
            for line in driver.stdout or ():
                for action in json.loads(line)["actions"]:
                    self._actions.setdefault(str(action.get("job")), []).append(f"{action['do']} {action['result']}")
                    if action["result"] == "refused":
                        self.faults.append(f"refused: {action}")

        def complain() -> None:
            self.faults.extend(line for line in driver.stderr or () if "Traceback" in line or "error:" in line)

        for target in (listen, complain):
            threading.Thread(target=target, daemon=True).start()
        return driver

    def _judge(self, job: dict[str, Any]) -> None:
        """Compare where a job ran with its note; one that is COMPLETING is listed on the nodes that still have it."""
        what = f"job {job['job_id']} ({job['name']})"
        ending = job["job_state"] == "COMPLETING"
        if not ending and job["job_state"] != "COMPLETED":
            told = f"{job['state_reason']}, {job['state_description']!r}, {job['admin_comment']}"
            told += f", {self._actions.get(str(job['job_id']), 'no action')}"
            self.faults.append(f"{what} ended {job['job_state']}: {told}")
            return
        self.starts += 1
        note, ran = read_note(job["admin_comment"]), set(expand_hosts(job["nodes"]))
        planned = set(note.nodes) if note is not None and note.kind == "start" else set()
        if not planned or not (ran <= planned if ending else ran == planned):
            self.faults.append(f"{what} ran on {job['nodes']}: {job['admin_comment']}")


def _left(lab: SlurmLab, states: str, longest_s: float) -> list[str]:
    """Wait until no job is in these states, at most so long; return those that are."""
    end = time.time() + longest_s
    while jobs := lab.run("squeue", "--noheader", "--array", f"--states={states}", "--format=%i").split():
        if time.time() > end:
            break
        time.sleep(0.5)
    return jobs


def cases(seed: int) -> Iterator[Case]:
    """Run one list after the other."""
    for number in count(seed):
        policy = POLICIES[number % len(POLICIES)]
        run = Run(policy)
        run.go(number)
        if run.stood_still_s > STANDSTILL_S:
            yield Case("stood still")
        else:
            yield Case(policy, [f"seed {number}, {policy}: {fault}" for fault in run.faults], {"starts": run.starts})


CAMPAIGN = Campaign("does every job of a real Slurm run where its note says?", cases, 10, 60, missing=why_no_lab)
