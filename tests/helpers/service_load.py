"""Random requests to the service that the state known from its answers allows."""

from __future__ import annotations

import random
from dataclasses import dataclass

from helpers.service_model import Effect, Json, State

MOST_WAITING = 20


@dataclass
class Request:
    """A call that changes the cluster."""

    call: str
    body: Json
    key: str | None = None

    @property
    def how(self) -> dict[str, str]:
        """Its ``Idempotency-Key``, where it has one."""
        return {} if self.key is None else {"key": self.key}

    def effect(self, revision: int, told: dict[str, Json], actions: list[Json]) -> Effect:
        """Return what it does; ``told``: actions known before, ``actions``: those that it told."""
        effect = Effect(revision, actions=actions)
        if self.call == "put_cluster":
            effect.loaded = self.body
        elif self.call == "changes":
            effect.steps = self.body["steps"]
        elif self.call == "decide" and self.body.get("add_jobs"):
            effect.steps = [{"do": "add_jobs", "jobs": self.body["add_jobs"]}]
        elif self.call == "outcome":
            failed = [said["action"] for said in self.body["outcomes"] if said["result"] == "failed"]
            effect.failed = [told[name]["action"]["job"] for name in failed if name in told]
        return effect


class Load:
    """
    Draws requests.

    Parameters
    ----------
    instance
        The cluster that is loaded first; jobs that come later are like its jobs.
    """

    def __init__(self, instance: Json, draw: random.Random) -> None:
        self._draw = draw
        self._jobs = instance["jobs"]
        self._nodes = [node["id"] for node in instance["cluster"]["nodes"]]
        self._number = 0

    def request(self, state: State, told: dict[str, Json]) -> Request:
        """Return a decision, some changes, or outcomes of actions; ``told``: actions that are known."""
        self._number += 1
        kind = self._draw.choices(("come", "decide", "steps", "outcome"), (4, 3, 4, 3))[0]
        body = None
        if kind == "outcome":
            body = self._outcome(state, told)
        elif kind == "decide" and state.waiting:
            body = {"jobs": self._some(state.waiting, 3), **self._flags(), "explain": False}
        elif kind == "come":
            body = {"add_jobs": self._come(self._draw.randint(1, 2)), **self._flags(), "explain": False}
        if body is not None:
            return self.keyed("outcome" if kind == "outcome" else "decide", body)
        return self.keyed("changes", {"steps": self._steps(state)})

    def keyed(self, call: str, body: Json) -> Request:
        """Return a request, two times of three under a key of its own."""
        key = f"key-{self._number}-{self._draw.getrandbits(32):08x}" if self._draw.random() < 2 / 3 else None
        return Request(call, body, key)

    def host(self, snapshot: Json) -> Request:
        """Return the load of a cluster as a host may find it: as in a snapshot, but for some jobs that do not run."""
        self._number += 1
        kept = [held for held in snapshot.get("running", []) if self._draw.random() < 0.9]
        return self.keyed("put_cluster", {**snapshot, "running": kept})

    def _some(self, names: list[str], most: int) -> list[str]:
        return self._draw.sample(names, min(len(names), self._draw.randint(1, most)))

    def _flags(self) -> Json:
        return {flag: self._draw.random() < 0.7 for flag in ("movable", "preemptible")}

    def _come(self, count: int) -> list[Json]:
        self._number += 1
        return [{**self._draw.choice(self._jobs), "id": f"new-{self._number}-{n}"} for n in range(count)]

    def _outcome(self, state: State, told: dict[str, Json]) -> Json | None:
        """Say what came of the last action of some jobs that run."""
        last = {action["action"]["job"]: name for name, action in told.items()}
        does = {name: told[name]["action"]["do"] for job, name in last.items() if job in state.running}
        names = [name for name, do in does.items() if told[name]["outcome"] == "open" and do != "preempt"]
        if not names:
            return None
        failed = {name for name in names if does[name] == "start" and self._draw.random() < 0.3}
        said = self._some(names, 4)
        return {"outcomes": [{"action": name, "result": "failed" if name in failed else "done"} for name in said]}

    def _steps(self, state: State) -> list[Json]:
        """Return some steps, each legal after those before it."""
        steps: list[Json] = [{"do": "set_time", "now_ms": state.now_ms + self._draw.randint(1, 5000)}]
        drained = sorted(state.drained)
        if len(drained) > 1:
            steps.append({"do": "undrain", "nodes": [self._draw.choice(drained)]})
        elif self._draw.random() < 0.2:
            steps.append({"do": "drain", "nodes": [self._draw.choice(self._nodes)]})
        if len(state.waiting) > MOST_WAITING:
            steps.append({"do": "remove_jobs", "jobs": state.waiting[: len(state.waiting) - MOST_WAITING]})
        elif state.waiting and self._draw.random() < 0.3:
            steps.append({"do": "change_job", "job": self._draw.choice(state.waiting), "fields": {"priority": 3}})
        if state.running:
            steps += [
                {"do": "stop" if self._draw.random() < 0.2 else "remove_jobs", "jobs": [job]}
                for job in self._some(sorted(state.running), 2)
            ]
        if self._draw.random() < 0.3:
            steps.append({"do": "add_jobs", "jobs": self._come(2)})
        if self._draw.random() < 0.1:
            steps.append({"do": "drain", "nodes": [self._draw.choice(self._nodes)], "stop": True})
        if self._draw.random() < 0.1:
            steps.append({"do": "set_policy", "fields": {"name": f"policy-{self._number}"}})
        return steps
