"""
Lists of jobs through ``placeopt slurm run`` on a real Slurm, under one policy after the other: each runs where its note
says.

60 jobs of 13 shapes come within 15 s and run for 3 to 15 s; their comments state run times that are half to twice of
what is true, and another use of GPUs than is measured. What goes wrong: node g8 is drained from the beginning; a
node is killed; the prolog of three jobs fails, for which Slurm drains the node and holds the job until somebody resumes
and releases them; a fifth of the jobs take 4 s to end (epilog); slurmctld stands still for some seconds, and is stopped
and started anew; Prometheus stands still. The driver reads the use of GPUs from a real Prometheus, where one is
installed.

Where a job was to run is read from its admin comment, where it ran from squeue, both after the end and once
no node has to report any more: a job that is COMPLETING is listed without the nodes that have (``man squeue``, %N).
Faults: a job ran elsewhere than its note says, a start was refused, or a job did not end. Needs root, slurm-wlm and
munge.
"""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

from campaigns.harness import Campaign, Case
from helpers.driver_process import DriverProcess, Event, fired, happen_in_time
from helpers.live_policies import BASELINES, COPIES, PREDICTED, SYSTEMS, policy_of
from helpers.prometheus_lab import MISSING, Exporter, Server, prometheus
from helpers.slurm_lab import GPU_NODES, SHAPES, SlurmLab, why_no_lab
from placeopt.drivers.slurm import read_note
from placeopt.importers.slurm import expand_hosts

NUM_JOBS, ARRIVE_S, RUN_S = 60, 15.0, (3.0, 15.0)
FAULTS_S, LONGEST_S = (5.0, 30.0), 240.0
DRAINED = "g8"
UNLUCKY = 3
AWAY_S, UNMEASURED_S, REPAIR_S = 5.0, 8.0, 5.0
POLICIES = (*SYSTEMS, *BASELINES, *COPIES, PREDICTED)
SERVICE = "one GPU"
MAY_STOP = ("half a node", "exclusive node", "CPUs")
"""Shapes whose owners let jobs be stopped for others."""
SETTLE_S = 30.0
"""How long nodes have, after the last job, to report that what ran on them has ended."""
STANDSTILL_S = 3.0
"""A run in which this process stood still for longer is not counted: somebody stopped it, and Slurm went on."""
PROLOG = 'rm "$(dirname "$0")/unlucky/$SLURM_JOB_ID" 2>/dev/null && exit 1; exit 0'
EPILOG = "case $SLURM_JOB_ID in *[05]) sleep 4;; esac"


def profile_of(shape: str) -> str:
    """Return the profile of the jobs of a shape."""
    return f"shape-{list(SHAPES).index(shape)}"


class Run:
    """One list of jobs, and what must not be: ``faults``; ``figures``: what was counted."""

    def __init__(self, policy: str, seed: int) -> None:
        self._policy, self._dice = policy, random.Random(seed)
        self.faults: list[str] = []
        self.figures = Counter[str]()
        self.stood_still_s = 0.0
        self._over = threading.Event()
        self._prometheus: Server | None = None

    def go(self) -> None:
        """Submit the jobs, of each shape about as many, while things go wrong, and wait for the end."""
        with ExitStack() as stack:
            lab = SlurmLab("bf_interval=3,bf_resolution=1,batch_sched_delay=0", Prolog=PROLOG, Epilog=EPILOG)
            self._lab = stack.enter_context(lab)
            (lab.folder / "unlucky").mkdir()
            lab.run("scontrol", "update", f"NodeName={DRAINED}", "State=DRAIN", "Reason=campaign")
            exporter = Exporter()
            stack.callback(exporter.server.shutdown)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            policy = policy_of(self._policy, folder, map(profile_of, SHAPES))
            words = ["slurm", "run", "--every", "1s", "--worth", "jobs", "--policy", policy]
            if MISSING is None:
                self._prometheus = stack.enter_context(prometheus(folder, exporter))
                words += ["--telemetry", self._prometheus.url]
            driver = DriverProcess(*words, env=lab.env)
            for watch in (self._watch_clock, lambda: self._measure(exporter), self._repair):
                threading.Thread(target=watch, daemon=True).start()
            self._let_it_happen()
            if left := self._left("PENDING,RUNNING", LONGEST_S):
                self.faults.append(f"{len(left)} jobs have not ended: {', '.join(left[:5])}")
            self._left("COMPLETING", SETTLE_S)
            self._over.set()
            time.sleep(1)  # for a last round
            driver.stop()
            self._judge(driver)

    def _let_it_happen(self) -> None:
        shapes = list(islice(cycle(SHAPES), NUM_JOBS))
        self._dice.shuffle(shapes)
        unlucky = set(self._dice.sample(range(NUM_JOBS), UNLUCKY))
        events: list[Event] = []
        for number, shape in enumerate(shapes):
            arrive = self._submission(shape, self._dice.uniform(*RUN_S), unlucky=number in unlucky)
            events.append((self._dice.uniform(0, ARRIVE_S), arrive))
        victim = self._dice.choice([node for node in GPU_NODES if node != DRAINED])
        troubles = [lambda: self._lab.kill_node(victim), self._restart_controller]
        troubles.append(lambda: self._lab.pause("slurmctld", AWAY_S))
        if self._prometheus is not None:
            troubles.append(self._stop_measuring)
        events += [(self._dice.uniform(*FAULTS_S), trouble) for trouble in troubles]
        happen_in_time(events)

    def _submission(self, shape: str, run_s: float, *, unlucky: bool) -> Callable[[], None]:
        stated: dict[str, object] = {"run_time_ms": round(1000 * run_s * self._dice.uniform(0.5, 2.0))}
        if shape != "CPUs":
            percent, alike = self._dice.randrange(10, 100), profile_of(shape)
            stated |= {"gpu_utilisation_percent": percent, "profile": alike, "communication_weight": 4}
            stated["kind"] = "inference" if shape == SERVICE else "training"
        may_stop = ["placeopt.preemptible"] if shape in MAY_STOP else []
        comment = " ".join(["placeopt", *may_stop, *(f"placeopt.{name}={value}" for name, value in stated.items())])

        def submit() -> None:
            options = ("--time=2", f"--comment={comment}", *SHAPES[shape], f"--job-name={shape}")
            job = self._lab.submit(*options, seconds=run_s)
            if unlucky:
                (self._lab.folder / "unlucky" / job).touch()

        return submit

    def _restart_controller(self) -> None:
        self._lab.stop_daemon("slurmctld")
        time.sleep(AWAY_S)
        self._lab.start_daemon("slurmctld")

    def _stop_measuring(self) -> None:
        if self._prometheus is not None:
            threading.Thread(target=self._prometheus.pause, args=(UNMEASURED_S,)).start()

    # What goes on beside.

    def _watch_clock(self) -> None:
        last = time.time()
        while not self._over.wait(0.2):
            self.stood_still_s, last = max(self.stood_still_s, time.time() - last), time.time()

    def _measure(self, exporter: Exporter) -> None:
        """What the GPUs of each running job measure: some percent of its own."""
        while not self._over.wait(1.0):
            with suppress(RuntimeError, subprocess.TimeoutExpired):
                jobs = self._lab.run("squeue", "--noheader", "--states=RUNNING", "--format=%A").split()
                exporter.gpus = {job: ({"hpc_job": job}, 10.0 + int(job) * 37 % 90, 3000.0) for job in jobs}

    def _repair(self) -> None:
        """Resume the nodes that were drained since a prolog failed, and release its job, as an operator does."""
        while not self._over.wait(REPAIR_S):
            with suppress(RuntimeError, subprocess.TimeoutExpired):
                for line in self._lab.run("sinfo", "--noheader", "--Node", "--format=%N %E").splitlines():
                    node, _, reason = line.partition(" ")
                    if reason.startswith("Prolog"):
                        self._lab.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
                        self.figures["failed prologs"] += 1
                for job in self._lab.run("squeue", "--noheader", "--states=PENDING", "--format=%A %r").splitlines():
                    if "launch failed requeued held" in job.replace("_", " "):
                        self._lab.run("scontrol", "release", job.split()[0])

    def _left(self, states: str, longest_s: float) -> list[str]:
        """Wait until no job is in these states, at most so long; return those that are."""
        end, query = time.time() + longest_s, ("squeue", "--noheader", "--array", f"--states={states}", "--format=%i")
        while jobs := self._lab.run(*query).split():
            if time.time() > end:
                break
            time.sleep(0.5)
        return jobs

    # What must hold.

    def _judge(self, driver: DriverProcess) -> None:
        actions: dict[str, list[str]] = {}
        for action in (action for one in driver.rounds for action in one["actions"]):
            actions.setdefault(str(action.get("job")), []).append(f"{action['do']} {action['result']}")
            if action["result"] == "refused":
                self.faults.append(f"refused: {action}")
        self.faults += driver.faults
        for job in json.loads(self._lab.run("squeue", "--json"))["jobs"]:
            self._judge_job(job, actions)
        self.figures["rounds"] = len(driver.rounds)
        self.figures["rounds without measures"] = sum(bool(one["unmeasured"]) for one in driver.rounds)
        self.figures["rounds cut short"] = sum(bool(one["silent"]) for one in driver.rounds)
        self.figures.update({f"{self._policy}: {name}": number for name, number in fired(driver.rounds).items()})

    def _judge_job(self, job: dict[str, Any], actions: dict[str, list[str]]) -> None:
        """Compare where a job ran with its note; one that is COMPLETING is listed on the nodes that still have it."""
        what = f"job {job['job_id']} ({job['name']})"
        ending = job["job_state"] == "COMPLETING"
        if not ending and job["job_state"] != "COMPLETED":
            told = f"{job['state_reason']}, {job['state_description']!r}, {job['admin_comment']}"
            told += f", {actions.get(str(job['job_id']), 'no action')}"
            self.faults.append(f"{what} ended {job['job_state']}: {told}")
            return
        self.figures["starts"] += 1
        note, ran = read_note(job["admin_comment"]), set(expand_hosts(job["nodes"]))
        planned = set(note.nodes) if note is not None and note.kind == "start" else set()
        if not planned or not (ran <= planned if ending else ran == planned):
            self.faults.append(f"{what} ran on {job['nodes']}: {job['admin_comment']}")


def cases(seed: int) -> Iterator[Case]:
    """Run one list after the other."""
    for number in count(seed):
        policy = POLICIES[number % len(POLICIES)]
        run = Run(policy, number)
        run.go()
        if run.stood_still_s > STANDSTILL_S:
            yield Case("stood still")
        else:
            yield Case(policy, [f"seed {number}, {policy}: {fault}" for fault in run.faults], dict(run.figures))


CAMPAIGN = Campaign("does every job of a real Slurm run where its note says?", cases, 10, 60, missing=why_no_lab)
