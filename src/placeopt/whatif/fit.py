"""How many more of a job fit beside what runs, how large a gang, and what binds."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np

from placeopt.arguments import checked
from placeopt.explain import explain
from placeopt.feasibility.fit import largest
from placeopt.feasibility.free_capacity import FreeCapacity, free_capacity_of
from placeopt.feasibility.requirement import Requirement, requirements_of
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Job
from placeopt.model.job import MAX_WORKERS, Split
from placeopt.problem import State, compile_problem
from placeopt.whatif.after_plan import only_running
from placeopt.whatif.capacity import Limits, attempt, weigh
from placeopt.whatif.domain_levels import levels_of
from placeopt.whatif.instance_edit import edit_instance
from placeopt.whatif.records import Binding, Fit, Gang

MOST_COPIES = 20_000
"""Copies that are tried; where more may fit, only what arithmetic says bounds them."""
NO_LIMIT = 10**12
EXPLAIN_S = 10.0


@checked
def fit(instance: Instance, job: Job, limits: Limits | None = None, cancel: threading.Event | None = None) -> Fit:
    """
    Tell how many copies of a job fit beside what runs; waiting jobs are left aside.

    Parameters
    ----------
    instance
        The cluster and what runs on it, as `placeopt.whatif.after_plan.after_plan` gives it for a plan.
    job
        What is asked for; `placeopt.whatif.job_spec.parse_job` reads ``8xH100``.
    limits
        Of the round that counts copies; gangs and what binds are exact, without a solver.
    cancel
        Set it from another thread to stop with what is known.

    Returns
    -------
    Fit
        Copies found, each checked by the referee, and the most that there can be, proven. ``gangs``: the most workers
        of its kind in one domain of each level, proven. ``binds``: constraints that cannot hold together for one copy
        more, while without any one of them it fits; None if there was room left or no time to say.

    Notes
    -----
    Copies are jobs of a round in which each is worth 1, at most as many as GPUs, or CPU and memory, leave room for, and
    one more; at most 20,000.
    """
    began = time.monotonic()
    limits = limits or Limits()
    base = only_running(instance)
    taken = {one.id for one in base.jobs}
    asked = job.model_copy(update={"id": _free_name("asked", taken)})
    room = free_capacity_of(State(compile_problem(edit_instance(base, jobs=(*base.jobs, asked)))), asked)
    requirements = requirements_of(room.problem, asked)
    gangs = _gangs(room, requirements, instance)
    at_most = _most_copies(room, requirements)
    count = min(at_most, MOST_COPIES)
    copies = tuple(asked.model_copy(update={"id": _free_name(f"asked-{number}", taken)}) for number in range(count + 1))
    names = {copy.id for copy in copies}
    round_ = weigh(edit_instance(base, jobs=(*base.jobs, *copies)), lambda _: 1)
    with Engine() as engine:
        trial = attempt(engine, round_, limits, cancel)
    found = sum(placement.job in names for placement in trial.plan.placements)
    most = trial.most - (trial.placed - found)
    if most > count:  # not even one copy of those tried must be left out
        most = at_most
    binds: tuple[Binding, ...] | None = None
    left = next((one.job for one in trial.plan.unplaced if one.job in names), None)
    if left is not None:
        explained = explain(round_, trial.plan, left, time_limit_s=EXPLAIN_S)
        if explained.conflict:
            binds = tuple(Binding(name=one.name, asks=one.asks) for one in explained.conflict)
    gpus = max(option.workers * option.demand.gpus * option.demand.gpu_milli for option in job.options)
    return Fit(
        found=found,
        most=max(min(most, at_most), found),
        gpu_milli_each=gpus,
        gangs=gangs,
        binds=binds,
        seconds=time.monotonic() - began,
    )


def _gangs(room: FreeCapacity, requirements: tuple[Requirement, ...], instance: Instance) -> tuple[Gang, ...]:
    """Return the largest gang of such workers in one domain of each level, and anywhere."""
    out = []
    for level in (*levels_of(instance), "cluster"):
        best: Gang | None = None
        for requirement in requirements:
            splits = () if level == "cluster" else (Split(level=level, domains=1),)
            free = replace(requirement, fewest=1, most=MAX_WORKERS, single_node=False, splits=splits)
            workers = largest(room, free) or 0
            if best is None or workers * requirement.gpus > best.workers * best.gpus_each:
                best = Gang(
                    level=level,
                    workers=workers,
                    gpus_each=requirement.gpus,
                    gpu_milli_each=requirement.gpus * requirement.milli,
                )
        if best is not None:
            out.append(best)
    return tuple(out)


def _most_copies(room: FreeCapacity, requirements: tuple[Requirement, ...]) -> int:
    """Return more copies than can run, whatever else binds: by GPU shares, and by CPU and memory."""
    return max((_most_of(room, requirement) for requirement in requirements), default=0)


def _most_of(room: FreeCapacity, requirement: Requirement) -> int:
    if not requirement.useful:
        return 0
    reachable = room.reachable(requirement)
    most = NO_LIMIT
    for r, need in enumerate(requirement.demand):
        if need:
            most = min(most, int((np.maximum(room.node_free[reachable, r], 0) // need).sum()))
    if requirement.gpus:
        usable = room.usable(requirement) & reachable[room.problem.gpu_node]
        jobs = (
            np.full(len(usable), NO_LIMIT // max(1, len(usable)))
            if requirement.jobs_per_gpu is None
            else requirement.jobs_per_gpu - room.gpu_jobs
        )
        if room.problem.shares_bind:
            jobs = np.minimum(jobs, room.gpu_milli // requirement.milli)
        if requirement.gpus > 1 or requirement.milli == 1000:  # whole GPUs: by node
            whole = np.bincount(room.problem.gpu_node[usable], minlength=room.problem.num_nodes) // requirement.gpus
            by_node = int(whole.sum()) * (1 if room.problem.shares_bind else int(jobs.max(initial=0)))
            most = min(most, by_node)
        else:
            most = min(most, int(jobs[usable].sum()))
    return most // requirement.fewest


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name
