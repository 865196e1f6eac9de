"""Kills of the service under load, and what has to hold after each new start; `tests/campaigns/kill_service.py`."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Self

from helpers.plan_records import keeping
from helpers.service_child import SERVE, Reply, ServiceChild
from helpers.service_load import Load, Request
from helpers.service_model import SETTLED, Contradiction, Effect, Json, State, after, observed, settled
from placeopt import Engine, violations
from placeopt.documents import loads
from placeopt.model import Instance
from placeopt.service import Service

MOMENTS = ("idle", "request", "answer", "round", "replay")
"""After all answers; a while after a request; as its answer arrives; in a round; before the first answer of a start."""
WEIGHTS = (2, 6, 3, 5, 4)
OVER = ("done", "failed", "cancelled")


class Kills:
    """
    One folder that outlives many processes, and what its client knows.

    Parameters
    ----------
    folder
        An empty folder; the state and a copy of it are below.
    instance
        The cluster that is loaded first.
    command
        What is started, without the folder of the state.

    Attributes
    ----------
    faults
        What must not be; empty if all held.
    kills, answered, entries
        Kills; changes that were answered; changes in the journal at the end.
    repeated
        Requests that had been answered under a key, and were sent again after a start.
    replays
        Starts on a folder that a kill had left, each compared with a second process.
    """

    def __init__(self, folder: Path, instance: Instance, seed: int, command: tuple[str, ...] = SERVE) -> None:
        self.faults: list[str] = []
        self.kills = self.answered = self.entries = self.repeated = self.replays = 0
        self._folder, self._copy, self._command = folder / "state", folder / "copy", command
        self._draw, self._seed, self._moment = random.Random(seed), seed, ""
        first: Json = json.loads(instance.model_dump_json(exclude_defaults=True))  # jobs without templates
        self._load = Load(first, self._draw)
        self._seconds: dict[str, float] = {}
        self._told: dict[str, Json] = {}
        self._state, self._effects = State(), list[Effect]()
        self._revision, self._last_event, self._written = 0, 0, 0
        self._pending: Request | None = None
        self._kept: tuple[Request, Reply] | None = None
        self._round: str | None = None
        self._shot: tuple[int, bytes] = (-1, b"")
        self._child = ServiceChild(self._folder, command)
        self._answered(Request("put_cluster", first), self._child.ask("put_cluster", first))

    def run(self, moments: Iterable[str]) -> Self:
        """Kill at these moments, and start anew after each."""
        lives = {"idle": self._idle, "request": self._request, "answer": self._request, "round": self._in_round}
        alive = True
        try:
            for moment in moments:
                if moment == "replay":
                    self._in_replay(alive)
                else:
                    if not alive:
                        self._start()
                    self._moment = moment
                    lives[moment]()
                alive = False
            self._start()
            self.entries = self._last_event
        except Contradiction as error:
            self._fault("twice", str(error))
        finally:
            self._child.kill()
        return self

    # --- a life, and its end

    def _ask(self, request: Request) -> Reply:
        return self._child.ask(request.call, request.body, **request.how)

    def _send(self, request: Request) -> None:
        self._child.send(request.call, request.body, **request.how)

    def _snapshot(self) -> Json:
        snapshot: Json = self._child.ask("snapshot")["reply"]
        return snapshot

    def _took(self, what: str, seconds: float) -> None:
        self._seconds[what] = 0.7 * self._seconds.get(what, seconds) + 0.3 * seconds

    def _requests(self, least: int, most: int) -> None:
        """Have some requests answered, and keep the snapshot after them."""
        for _ in range(self._draw.randint(least, most)):
            request = self._drawn()
            began = time.monotonic()
            answer = self._ask(request)
            self._took(request.call, time.monotonic() - began)
            self._answered(request, answer)
        self._shot = self._snapshot().get("revision", 0), self._child.content

    def _drawn(self) -> Request:
        """Return the next request; some need others before them, which are answered here."""
        which = self._draw.random()
        if self._round is None and which < 0.04:
            return self._load.host(self._snapshot())
        if self._round is None and which < 0.12:
            body = {"time_limit_s": 5, "method": self._draw.choice(["fcfs", "stranding"])}
            name = self._child.ask("start_round", body)["reply"]["id"]
            while (status := self._child.ask("round", path={"id": name})["reply"])["state"] not in OVER:
                time.sleep(0.002)
            return self._load.keyed("commit", {"plan": status["plan"], "preemptible": True})
        return self._load.request(after(self._state, self._effects), self._told)

    def _killed(self, request: Request | None = None) -> None:
        """Kill now; an answer that was written counts."""
        self.kills += 1
        rest = self._child.kill()
        if request is not None and rest is None:
            self._pending = request
        elif request is not None and rest is not None:
            self._answered(request, rest)

    def _idle(self) -> None:
        self._requests(1, 6)
        time.sleep(self._draw.uniform(0, 0.02))
        self._killed()

    def _request(self) -> None:
        self._requests(0, 5)
        request = self._drawn()
        self._send(request)
        if self._moment == "answer":
            self._child.wait(60)
        else:
            time.sleep(self._draw.uniform(0, 1.5 * self._seconds.get(request.call, 0.01)))
        self._killed(request)

    def _in_round(self) -> None:
        self._requests(0, 2)
        body = {"time_limit_s": self._draw.choice([0.3, 1.0]), "commit": True, "movable": True, "preemptible": True}
        self._round = self._child.ask("start_round", body)["reply"]["id"]
        began = time.monotonic()
        end = began + self._draw.uniform(0, 1.5 * self._seconds.get("round", 0.3))
        request = None
        while request is None and time.monotonic() < end:
            if self._round is not None and self._draw.random() < 0.5:
                self._poll(time.monotonic() - began)
                continue
            request = self._drawn()
            self._send(request)
            if self._child.wait(max(0.0, end - time.monotonic())):
                self._answered(request, self._child.answer())
                request = None
            time.sleep(min(0.05, max(0.0, end - time.monotonic())) * self._draw.random())
        self._killed(request)

    def _poll(self, took: float) -> None:
        status = self._child.ask("round", path={"id": self._round})["reply"]
        if status["state"] not in OVER:
            return
        self._took("round", took)
        self._round = None
        if status["state"] != "done":
            self._fault("other", f"round {status['state']}: {status['detail']}")
        if (commit := status["commit"]) is not None:
            self._count(Effect(commit["revision"], actions=commit["actions"]), bool(commit["committed"]))

    def _in_replay(self, alive: bool) -> None:
        if alive:  # an end of which nothing is asked, so that there is something to read back
            self._child.kill()
        child = ServiceChild(self._folder, self._command)
        child.send("state")
        time.sleep(self._draw.uniform(0, 1.1 * self._seconds.get("start", 1.0)))
        self.kills += 1
        child.kill()

    # --- what answers tell

    def _answered(self, request: Request, answer: Reply) -> None:
        if "error" in answer:
            if answer["error"]["status"] not in (409, 422):
                self._fault("other", f"{request.call}: {answer['error']}")
            return
        reply = answer["reply"]
        if request.key is not None:
            self._kept = request, reply
        self.answered += 1
        _outcomes(self._told, request)
        actions = reply.get("actions", [])
        wrote = request.call in ("put_cluster", "changes", "outcome") or bool(
            request.key or actions or request.body.get("add_jobs")
        )
        self._count(request.effect(reply["revision"], self._told, actions), wrote)

    def _count(self, effect: Effect, wrote: bool) -> None:
        self._effects.append(effect)
        self._written += wrote
        self._revision = max(self._revision, effect.revision)
        for told in effect.actions:
            if told["id"] in self._told:
                self._fault("twice", f"action {told['id']} was told before")
            self._told[told["id"]] = told

    # --- what holds after a start

    def _start(self) -> None:
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._folder, self._copy)
        with Service(self._copy) as second:
            replayed = b'"reply":' + second.call("snapshot").rstrip().replace(b"\n", b" ")
        began = time.monotonic()
        self._child = ServiceChild(self._folder, self._command)
        snapshot = self._snapshot()
        self._took("start", time.monotonic() - began)
        content, revision = self._child.content, snapshot.get("revision", 0)
        self.replays += 1
        if content != replayed:
            self._fault("bytes", "a second process reads another snapshot")
        if revision == self._shot[0] and content != self._shot[1]:
            self._fault("bytes", f"snapshot of revision {revision} differs from the one before the kill")
        if revision < self._revision:
            self._fault("lost", f"revision {revision}, answered was {self._revision}")
        self._judge(snapshot)
        listed = self._child.ask("actions")["reply"]["actions"]
        news = self._child.ask("events", query={"after": self._last_event})["reply"]
        extra = news["last"] - self._last_event - self._written
        done = self._explained(observed(snapshot), listed, [event["revision"] for event in news["events"]], extra)
        self._last_event, self._written = news["last"], 0
        self._state, self._effects, self._revision = observed(snapshot), [], revision
        self._told = {told["id"]: told for told in listed}
        self._once_more()
        pending, self._pending, had_round, self._round = self._pending, None, self._round is not None, None
        if pending is not None and pending.key is not None:
            self._again(pending, content, done, exact=extra if not had_round else None)

    def _judge(self, snapshot: Json) -> None:
        """Let an engine load the snapshot, and the referee judge a plan that keeps all that runs."""
        instance = loads(Instance, json.dumps(snapshot).encode())
        with Engine() as engine:
            engine.load(instance)
        for found in violations(instance, keeping(instance))[:1]:
            self._fault("referee", found.message)

    def _explained(self, seen: State, listed: list[Json], revisions: list[int], extra: int) -> set[bool]:
        """Compare state and actions with what was answered; return whether the open request may have been done."""
        most = (self._pending is not None) + (self._round is not None)
        if extra < 0:
            self._fault("lost", f"{-extra} changes are not in the journal")
        if extra > most:
            self._fault("twice", f"{extra} changes more than were answered, at most {most} were open")
        fresh = [told for told in listed if told["id"] not in self._told]
        by_revision = groupby(fresh, key=lambda told: int(told["id"].partition(".")[0]))
        groups = [Effect(revision, actions=list(actions)) for revision, actions in by_revision]
        if len(groups) > max(extra, 0):
            self._fault("twice", f"actions of {len(groups)} changes are new, {extra} changes are")
        fits: set[bool] = set()
        why = []
        for revision in [None, *(sorted(set(revisions)) if self._pending is not None else [])]:
            told = dict(self._told)
            effects = [*self._effects, *groups]
            if revision is not None and self._pending is not None:
                effects.append(self._pending.effect(revision, told, []))
                effects.sort(key=lambda effect: (effect.revision, bool(effect.actions)))
                _outcomes(told, self._pending)
            try:
                state = after(self._state, effects)
            except Contradiction as error:
                why.append(str(error))
                continue
            wrong = [one["id"] for one in listed if one["id"] in told and not _same(one, told[one["id"]])]
            missing = told.keys() - {one["id"] for one in listed}
            if state == seen and not wrong and not missing:
                fits.add(revision is not None)
            else:
                different = [name for name in vars(seen) if getattr(seen, name) != getattr(state, name)]
                why.append(f"{different} differ; actions {wrong[:3]} differ, {sorted(missing)[:3]} are missing")
        if not fits:
            self._fault("lost", f"no order of what was answered and asked gives the state: {'; '.join(why)}")
        return fits

    def _new_events(self) -> int:
        last: int = self._child.ask("events", query={"after": self._last_event})["reply"]["last"]
        return last - self._last_event

    def _once_more(self) -> None:
        """Send the last request that was answered under a key again."""
        if self._kept is None:
            return
        request, reply = self._kept
        answer = self._ask(request)
        if answer.get("reply") != reply or self._new_events():
            self._fault("twice", f"{request.call}: another answer under a key that was answered: {str(answer)[:200]}")
        self.repeated += 1

    def _again(self, request: Request, content: bytes, done: set[bool], exact: int | None) -> None:
        """Send a request under a key once more, and a third time."""
        answer = self._ask(request)
        first, now = self._child.content, self._new_events()
        if "error" in answer:
            if False not in done or exact or answer["error"]["status"] not in (409, 422):
                self._fault("twice", f"{request.call} was done and is refused when sent again: {answer['error']}")
            return
        if now not in (0, 1) or (now == 0) not in done or (exact is not None and exact + now != 1):
            self._fault("twice", f"{request.call} sent again: {now} changes more, {exact} before, may be done: {done}")
        if now == 0:
            self._snapshot()
            if self._child.content != content:
                self._fault("twice", f"{request.call} sent again changed the cluster")
            for told in answer["reply"].get("actions", ()):
                if self._told.get(told["id"], {}).get("action") != told["action"]:
                    self._fault("lost", f"action {told['id']} of the reply under a key is not listed")
        else:
            self._answered(request, answer)
        self._ask(request)
        if self._child.content != first:
            self._fault("bytes", f"{request.call}: another reply under the same key")
        if self._new_events() != now:
            self._fault("twice", f"{request.call}: the third time changed something")

    def _fault(self, kind: str, words: str) -> None:
        self.faults.append(f"{kind}: seed {self._seed}, kill {self.kills}, {self._moment}: {words}")


def _outcomes(told: dict[str, Json], request: Request) -> None:
    """Write what came of actions as the request says; one that a broken service has forgotten is a fault already."""
    said = {}
    if request.call == "outcome":
        said = {one["action"]: one["result"] for one in request.body["outcomes"]}
    elif request.call == "put_cluster":
        said = settled(told, request.body)
    for name in said.keys() & told.keys():
        told[name] = {**told[name], "outcome": said[name]}


def _same(listed: Json, told: Json) -> bool:
    """Tell whether a listed action is the one that is known, with its outcome; words of hosts do not matter."""
    outcome = listed["outcome"] if told["outcome"] == SETTLED and listed["outcome"] != "open" else told["outcome"]
    return listed == told | {"detail": listed["detail"], "outcome": outcome}
