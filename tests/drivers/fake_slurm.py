"""A Slurm in memory that keeps the rules which the driver relies on, and takes note when the driver breaks one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from placeopt.drivers import Unreachable
from placeopt.drivers.slurm import JobNow, SlurmReading, SlurmRefused
from placeopt.importers.slurm import expand_hosts

GPUS = 4


class Killed(Exception):
    """The driver's process ends here."""


@dataclass
class FakeJob:
    """A job of ``nodes`` nodes with ``gpus`` GPUs on each; ``held``: user, admin or nobody."""

    id: str
    nodes: int = 1
    gpus: int = 1
    state: str = "PENDING"
    held: str = "user"
    reason: str = ""
    comment: str = "placeopt"
    admin_comment: str = ""
    partition: str = "gpu"
    required: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    on: list[str] = field(default_factory=list)
    restarts: int = 0
    submitted_s: int = 100
    started_s: int = 0
    ended_s: int = 0
    eligible_s: int = 0
    dependency: str = ""
    nice: int | None = None
    limit_min: int = 60
    qos: str = ""
    description: str = ""
    het_job_id: int = 0
    features: str = ""

    @property
    def reason_now(self) -> str:
        if self.state != "PENDING":
            return "None"
        return {"user": "JobHeldUser", "admin": "JobHeldAdmin"}.get(self.held, self.reason or "None")

    def entry(self) -> dict[str, Any]:
        """The job as ``squeue --json`` of 22.05 shows it."""
        same = ("partition", "qos", "comment", "admin_comment", "dependency", "nice", "het_job_id", "features")
        mark = f"cpu=1,mem=1G,node={self.nodes}"
        return {name: getattr(self, name) for name in same} | {
            "job_id": int(self.id),
            "het_job_id_set": f"{self.het_job_id}-{self.het_job_id + 1}" if self.het_job_id else "",
            "job_state": self.state,
            "state_reason": self.reason_now,
            "state_description": self.description,
            "priority": 0 if self.held in ("user", "admin") else 1,
            "nodes": ",".join(self.on),
            "required_nodes": ",".join(self.required),
            "excluded_nodes": ",".join(self.excluded),
            "het_job_offset": int(self.id) - self.het_job_id if self.het_job_id else 0,
            "restart_cnt": self.restarts,
            "submit_time": self.submitted_s,
            "start_time": self.started_s,
            "end_time": self.ended_s,
            "batch_flag": True,
            "requeue": True,
            "eligible_time": self.eligible_s,
            **dict.fromkeys(("node_count", "max_nodes", "tasks", "cpus"), self.nodes),
            "time_limit": self.limit_min,
            "memory_per_node": 1024,
            "tres_req_str": mark,
            "tres_alloc_str": f"{mark},gres/gpu={self.nodes * self.gpus}" if self.state == "RUNNING" else "",
            "tres_per_node": f"gres:gpu:{self.gpus}" if self.gpus else "",
        }


class FakeSlurm:
    """
    ``log``: Every change, in order. ``broken_rules``: What no driver may do. ``answers``: Exceptions by number of the
    call that changes something, counted from 0. ``accepts``: Nodes on which a released job starts.
    """

    def __init__(self, num_nodes: int = 4, jobs: list[FakeJob] | None = None) -> None:
        self.names = [f"n{i}" for i in range(num_nodes)]
        self.jobs = {job.id: job for job in jobs or []}
        self.node_states = dict.fromkeys(self.names, "idle")
        self.features = dict.fromkeys(self.names, "")
        self.accepts = set(self.names)
        self.log: list[str] = []
        self.broken_rules: list[str] = []
        self.answers: dict[int, Exception] = {}
        self.after: dict[int, Exception] = {}
        self.may_write_admin_comment = True
        self.reachable = True
        self.reserved: dict[str, Any] | None = None
        self.switches = ""
        self.now_s = 1000
        self.changes = 0
        self.starts: dict[str, int] = {}

    # what the driver calls

    def read(self) -> SlurmReading:
        if not self.reachable:
            raise Unreachable("squeue --json: Unable to contact slurm controller (connect failure)")
        used = Counter(name for job in self.jobs.values() if job.state == "RUNNING" for name in job.on)
        node = {
            "cpus": 32,
            "real_memory": 256_000,
            "gres": f"gpu:a100:{GPUS}",
            "state_flags": [],
            "partitions": ["gpu"],
        }
        nodes = []
        for name in self.names:
            seen = {"name": name, "state": self.node_states[name], "state_flags": [], "alloc_cpus": used[name]}
            nodes.append({**node, **seen, **dict.fromkeys(("features", "active_features"), self.features[name])})
        jobs = [job.entry() for job in self.jobs.values()]
        return SlurmReading({"nodes": nodes}, {"jobs": jobs}, self.switches, self.reserved)

    def job_now(self, job: str) -> JobNow | None:
        if not self.reachable:
            raise Unreachable("squeue: Unable to contact slurm controller")
        found = self.named(job)[:1]
        return (
            JobNow(found[0].state, found[0].description or found[0].reason_now, int(found[0].held == "nobody"))
            if found
            else None
        )

    def named(self, job: str) -> list[FakeJob]:
        """The jobs that a command means: ``8+1`` one component of a heterogeneous job, ``8`` all of them."""
        leader, plus, offset = job.partition("+")
        if plus:
            return [self.jobs[str(int(leader) + int(offset))]]
        return [one for one in self.jobs.values() if job in (one.id, str(one.het_job_id))]

    def scontrol(self, verb: str, job: str, fields: Mapping[str, str] | None = None) -> None:
        if verb == "update":
            self.update(job, fields or {})
        else:
            {"release": self.release, "uhold": self.user_hold, "requeuehold": self.requeue_hold}[verb](job)

    def update(self, job: str, fields: Mapping[str, str]) -> None:
        self._change(f"update {job} {' '.join(sorted(fields))}")
        if {"ReqNodeList", "NumNodes"} & fields.keys() and (len(self.named(job)) > 1 or "+" in job):
            raise SlurmRefused("scontrol update: Job resizing not supported for job arrays")
        for found in self.named(job):
            self._update(job, found, fields)
        self._after()

    def _update(self, job: str, found: FakeJob, fields: Mapping[str, str]) -> None:
        if "ExcNodeList" in fields:
            if found.state != "PENDING":
                raise SlurmRefused("slurm_update error: Job is no longer pending execution")
            found.excluded = expand_hosts(fields["ExcNodeList"])
        if "AdminComment" in fields and not self.may_write_admin_comment:
            raise SlurmRefused("scontrol update: Access/permission denied for job")
        if "ReqNodeList" in fields:
            if found.state == "RUNNING":
                self.broken_rules.append(f"job {job} was resized while it ran")
                found.on = [name for name in found.on if name in expand_hosts(fields["ReqNodeList"])]
            elif found.state == "PENDING":
                if found.held != "user":
                    self.broken_rules.append(f"the nodes of job {job} were changed without a user hold")
                found.required = expand_hosts(fields["ReqNodeList"])
        found.admin_comment = fields.get("AdminComment", found.admin_comment)
        found.comment = fields.get("Comment", found.comment)

    def release(self, job: str) -> None:
        self._change(f"release {job}")
        for found in self.named(job):
            if found.state not in ("PENDING", "RUNNING"):
                raise SlurmRefused(f"scontrol release: Job has already finished for job {job}")
            if found.held == "admin":
                self.broken_rules.append(f"an operator's hold of job {job} was released")
            found.held, found.description = "nobody", ""
        self._after()

    def user_hold(self, job: str) -> None:
        self._change(f"uhold {job}")
        for found in self.named(job):
            if found.held == "admin":
                self.broken_rules.append(f"an operator's hold of job {job} became a user's")
            found.held = "user"
        self._after()

    def requeue_hold(self, job: str) -> None:
        self._change(f"requeuehold {job}")
        for found in self.named(job):
            if found.state != "RUNNING":
                raise SlurmRefused("Job is pending execution")
            found.state, found.on, found.held = "PENDING", [], "user"
            found.description = "job requeued in held state"
            found.restarts += 1
        self._after()

    # what happens in it

    def schedule(self) -> None:
        """Start what may start, in the order of ids; a list of nodes means all of these, components start together."""
        for name in sorted({str(job.het_job_id or job.id) for job in self.jobs.values()}, key=int):
            together, taken = self.named(name), dict[str, list[str]]()
            for job in together:
                if job.state != "PENDING" or job.held != "nobody" or job.eligible_s > self.now_s:
                    break
                free = [name for name in self.names if self._free(name) >= job.gpus]
                open_ = [name for name in free if self.node_states[name] == "idle" and name in self.accepts]
                usable = [name for name in open_ if name not in {*job.excluded, *chain(*taken.values())}]
                chosen = job.required or usable[: job.nodes]
                if len(chosen) < job.nodes or not set(chosen) <= set(usable):
                    job.reason = "Resources"
                    break
                taken[job.id] = list(chosen)
            for job in together if len(taken) == len(together) else ():
                job.state, job.on, job.started_s, job.reason = "RUNNING", taken[job.id], self.now_s, ""
                self.starts[job.id] = self.starts.get(job.id, 0) + 1

    def end(self, job: str, state: str = "COMPLETED") -> None:
        """End a job that runs."""
        found = self.jobs[job]
        found.state, found.ended_s = state, self.now_s

    def requeue(self, job: str) -> None:
        """Put a job that runs back into the queue, as after a node failure; without a hold."""
        found = self.jobs[job]
        found.state, found.on, found.held, found.reason = "PENDING", [], "nobody", ""
        found.restarts += 1

    def _free(self, name: str) -> int:
        return GPUS - sum(job.gpus for job in self.jobs.values() if job.state == "RUNNING" and name in job.on)

    def _change(self, words: str) -> None:
        if not self.reachable:
            raise Unreachable("scontrol: Unable to contact slurm controller")
        number, self.changes = self.changes, self.changes + 1
        if number in self.answers:
            raise self.answers[number]
        self.log.append(words)

    def _after(self) -> None:
        if self.changes - 1 in self.after:
            raise self.after[self.changes - 1]
