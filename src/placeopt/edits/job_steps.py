"""Steps that change jobs: waiting and running ones."""

from __future__ import annotations

import random
from typing import Annotated, Any, Literal

from pydantic import Field

from placeopt.edits.records import changed, job_arriving_at, merged, refusal, refuse_unknown
from placeopt.edits.step import Ids, Step, without_running
from placeopt.model import Instance, Job, Running
from placeopt.model.base import Id


def change_of(before: Job, after: Job) -> ChangeJob:
    """Return the step that makes one record of a job of another."""
    old, new = (job.model_dump(mode="json", by_alias=True, exclude_defaults=True) for job in (before, after))
    return ChangeJob(do="change_job", job=before.id, fields=_difference(old, new))


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the merge patch (RFC 7396) of records without their defaults."""
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for name, value in new.items():
        both = isinstance(value, dict) and isinstance(old.get(name), dict)
        if value != old.get(name):
            patch[name] = _difference(old[name], value) if both else value
    return patch


class AddJobs(Step):
    """Add waiting jobs."""

    do: Literal["add_jobs"]
    jobs: Annotated[tuple[Job, ...], Field(min_length=1)]
    """Records with ids that are new."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the jobs."""
        return changed(before, jobs=(*before.jobs, *self.jobs))


class ChangeJob(Step):
    """
    Change fields of a job: a JSON merge patch (RFC 7396).

    A running job is displaced, unless its priority alone changes.
    """

    do: Literal["change_job"]
    job: Id
    """Its id."""
    fields: dict[str, Any]
    """Of `Job`."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the job."""
        old = next((job for job in before.jobs if job.id == self.job), None)
        if old is None:
            raise refusal("job", f"no job {self.job!r}")
        new = merged(old, self.fields, "fields")
        if new.id != old.id:
            raise refusal("fields.id", "a job keeps its id")
        jobs = tuple(new if job.id == self.job else job for job in before.jobs)
        runs_on = changed(new, priority=old.priority) == old
        return changed(before, jobs=jobs) if runs_on else without_running(changed(before, jobs=jobs), {self.job})


class RemoveJobs(Step):
    """Remove jobs, running or waiting."""

    do: Literal["remove_jobs"]
    jobs: Ids
    """By id."""

    def edited(self, before: Instance) -> Instance:
        """Return the round without the jobs."""
        refuse_unknown("jobs", "job", self.jobs, {job.id for job in before.jobs})
        gone = set(self.jobs)
        jobs = tuple(job for job in before.jobs if job.id not in gone)
        return without_running(changed(before, jobs=jobs), gone)


class Start(Step):
    """Let waiting jobs run where these records say, as another system has started them."""

    do: Literal["start"]
    running: Annotated[tuple[Running, ...], Field(min_length=1)]
    """One record of each job."""

    def edited(self, before: Instance) -> Instance:
        """Return the round in which the jobs run."""
        runs = {held.job for held in before.running}
        refuse_unknown(
            "running", "waiting job", [held.job for held in self.running], {job.id for job in before.jobs} - runs
        )
        return changed(before, running=(*before.running, *self.running))


class ChangeRunning(Step):
    """Change when a running job is expected to end, or what may be done to it: a JSON merge patch (RFC 7396)."""

    do: Literal["change_running"]
    job: Id
    """Its id."""
    fields: dict[str, Any]
    """Of `Running`, but those that say where it runs."""

    def edited(self, before: Instance) -> Instance:
        """Return the round in which the job runs on so."""
        refuse_unknown("job", "running job", [self.job], {held.job for held in before.running})
        return changed(
            before, running=tuple(self.of(held) if held.job == self.job else held for held in before.running)
        )

    def of(self, held: Running) -> Running:
        """Return the record of the running job with the fields; raises `BadInput` for one that says where it runs."""
        if odd := self.fields.keys() - CHANGEABLE:
            raise refusal(f"fields.{min(odd)}", f"expected one of {', '.join(sorted(CHANGEABLE))}")
        return merged(held, self.fields, "fields")


CHANGEABLE = frozenset({"expected_end_ms", "movable", "shrinkable", "preemptible", "protected_until_ms"})
"""Fields of a running job that do not say where it runs."""


class Stop(Step):
    """Stop running jobs; they wait."""

    do: Literal["stop"]
    jobs: Ids
    """By id."""

    def edited(self, before: Instance) -> Instance:
        """Return the round in which the jobs wait."""
        refuse_unknown("jobs", "running job", self.jobs, {held.job for held in before.running})
        return without_running(before, set(self.jobs))


class ScaleDemand(Step):
    """
    Draw waiting jobs until all jobs request ``percent`` of the cluster's GPUs.

    As in FGD's experiments (Weng et al., ATC'23): copies of waiting jobs, drawn uniformly with replacement, are added
    until the next one would exceed the target; where the jobs exceed it already, random ones are removed. Running jobs
    count too.
    """

    do: Literal["scale_demand"]
    percent: Annotated[int, Field(ge=0, le=1000)]
    """Part of all GPUs."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the draw."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with other waiting jobs."""
        target = 10 * self.percent * sum(before.cluster.gpus_by_node.values())  # GPU-milli
        runs = {held.job for held in before.running}
        waiting = [job for job in before.jobs if job.id not in runs]
        if not waiting:
            raise refusal("", "no waiting jobs to draw from")
        draw = random.Random(self.seed)  # noqa: S311 - repeatable, not secret
        jobs = list(before.jobs)
        asked = sum(job.gpu_milli for job in jobs)
        if asked > target:
            draw.shuffle(waiting)
            gone = set()
            for job in waiting:
                if asked <= target:
                    break
                gone.add(job.id)
                asked -= job.gpu_milli
            jobs = [job for job in jobs if job.id not in gone]
        elif not any(job.gpu_milli for job in waiting):
            raise refusal("", "the waiting jobs ask for no GPUs; their demand cannot be scaled")
        used, number = {job.id for job in jobs}, 0
        while asked <= target:
            job = draw.choice(waiting)
            asked += job.gpu_milli
            if asked > target:
                break
            while f"{job.id}+{number}" in used:
                number += 1
            jobs.append(job.model_copy(update={"id": f"{job.id}+{number}"}))
            number += 1
        return changed(before, jobs=tuple(jobs))


class ScaleArrivals(Step):
    """
    Change the rate of arrivals to ``percent``: all arrival times are divided by it.

    Deadlines keep their distance from the arrival. For traces; in a round no job arrives any more.
    """

    do: Literal["scale_arrivals"]
    percent: Annotated[int, Field(ge=1, le=1000)]
    """Of the present rate."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with jobs of other arrival times."""
        return changed(
            before, jobs=tuple(job_arriving_at(job, 100 * job.arrival_ms // self.percent) for job in before.jobs)
        )
