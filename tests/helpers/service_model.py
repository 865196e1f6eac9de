"""
What a client of the service knows from answers alone: what waits and runs where, and every action with its outcome.

Effects of answered calls are carried out in the order of their revisions, since a round commits beside other calls.
Nothing of ``placeopt.service`` is used: the rules of the calls are restated for the requests that the kills send.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Parts = tuple[tuple[int, str, tuple[int, ...]], ...]
"""Rank, node and GPUs of every worker."""
SETTLED = "settled"
"""An outcome of which is known only that it is no longer open: a later action of the job followed."""


class Contradiction(Exception):
    """An action does what cannot be done, such as the start of a job that runs."""


@dataclass
class State:
    """A cluster as far as clients can follow it."""

    priority: dict[str, int] = field(default_factory=dict)
    """Of all jobs."""
    running: dict[str, Parts] = field(default_factory=dict)
    drained: set[str] = field(default_factory=set)
    now_ms: int = 0
    policy: str = ""

    @property
    def waiting(self) -> list[str]:
        """Jobs that do not run, in order."""
        return sorted(self.priority.keys() - self.running.keys())

    def expect(self, job: str, words: str, *, waits: bool) -> None:
        """Raise `Contradiction` unless a job waits, or runs."""
        if job not in self.priority or (job in self.running) == waits:
            raise Contradiction(f"job {job!r} {words} and did not {'wait' if waits else 'run'}")


@dataclass
class Effect:
    """What one call did, and the revision after it."""

    revision: int
    steps: list[Json] = field(default_factory=list)
    actions: list[Json] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Jobs whose start failed."""
    loaded: Json | None = None


def _priority(job: Json, snapshot: Json) -> int:
    """Return the priority of a job as a file states it: its own, or that of its template."""
    template = snapshot.get("templates", {}).get(job.get("template"), {})
    priority: int = {**template, **job}.get("priority", 0)
    return priority


def observed(snapshot: Json) -> State:
    """Return the state that a snapshot shows."""
    return State(
        priority={job["id"]: _priority(job, snapshot) for job in snapshot["jobs"]},
        running={
            held["job"]: parts(
                [{**worker, "node": on["node"]} for on in held["assignments"] for worker in on["workers"]]
            )
            for held in snapshot.get("running", [])
        },
        drained={node["id"] for node in snapshot["cluster"]["nodes"] if node.get("drained")},
        now_ms=snapshot.get("now_ms", 0),
        policy=snapshot.get("policy", {}).get("name", ""),
    )


def parts(workers: list[Json]) -> Parts:
    """Return workers in order of their ranks."""
    return tuple(sorted((w["rank"], w["node"], tuple(sorted(w.get("gpus", ())))) for w in workers))


def after(state: State, effects: list[Effect]) -> State:
    """Return the state after effects, in the order of their revisions."""
    state = deepcopy(state)
    for effect in sorted(effects, key=lambda effect: effect.revision):
        if effect.loaded is not None:
            state = observed(effect.loaded)
        for step in effect.steps:
            _step(state, step)
        for action in effect.actions:
            _action(state, action["action"])
        for job in effect.failed:
            state.running.pop(job, None)  # a round may have stopped it before
    return state


def _step(state: State, step: Json) -> None:
    match step:
        case {"do": "add_jobs", "jobs": jobs}:
            for job in jobs:
                if job["id"] in state.priority:
                    raise Contradiction(f"job {job['id']!r} came twice")
                state.priority[job["id"]] = job.get("priority", 0)
        case {"do": "remove_jobs", "jobs": jobs}:
            for job in jobs:
                if state.priority.pop(job, None) is None:
                    raise Contradiction(f"job {job!r} was removed and was not there")
                state.running.pop(job, None)
        case {"do": "change_job", "job": job, "fields": {"priority": priority}}:
            state.expect(job, "changed", waits=True)
            state.priority[job] = priority
        case {"do": "stop", "jobs": jobs}:
            for job in jobs:
                state.expect(job, "stopped", waits=False)
                del state.running[job]
        case {"do": "set_time", "now_ms": now_ms}:
            state.now_ms = now_ms
        case {"do": "set_policy", "fields": fields}:
            state.policy = fields["name"]
        case {"do": "undrain", "nodes": nodes}:
            state.drained -= set(nodes)
        case _:
            assert step["do"] == "drain"
            state.drained |= set(step["nodes"])
            if step.get("stop"):
                for job, held in list(state.running.items()):
                    if any(node in step["nodes"] for _, node, _ in held):
                        del state.running[job]


def _action(state: State, action: Json) -> None:
    do, job = action["do"], action["job"]
    state.expect(job, f"was told to {do}", waits=do == "start")
    if do == "preempt":
        del state.running[job]
    else:
        state.running[job] = parts(action["parts"])


def settled(actions: dict[str, Json], host: Json) -> dict[str, str]:
    """Return the outcome of each open action by what a host says runs."""
    runs = observed(host).running
    told = {name: action["action"] for name, action in actions.items() if action["outcome"] == "open"}
    last = {action["job"]: name for name, action in told.items()}
    outcomes = {}
    for name, action in told.items():
        there = sorted(node for _, node, _ in runs.get(action["job"], ()))
        wanted = sorted(part["node"] for part in action.get("parts", ()))
        done = "done" if there == wanted else "failed"
        outcomes[name] = done if last[action["job"]] == name else SETTLED
    return outcomes
