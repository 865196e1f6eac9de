"""As many rounds as a cluster has in a day, one after the other, through the engine and the service: memory."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from placeopt import Engine, Instance, generate
from placeopt.documents import dumps, loads
from placeopt.explain import explain
from placeopt.live_cluster import ClusterChanges
from placeopt.model import Job
from placeopt.whatif import Limits, fail
from spec import BenchSpec, Row
from specs.service import Client, served
from specs.steady import resident_mib

CHANGES = 20
"""Jobs that end before a round, and as many that come."""
POINTS = 24
"""Rows of a run."""
EXPLAINED, ASKED = 5, 50
"""One round in so many: a waiting job is explained and the cluster read; it is asked what the loss of a node costs."""
Play = Callable[[list[str], list[Job]], set[str]]
"""Play a round: the jobs that end and those that come -> the jobs that start."""


class Through(NamedTuple):
    """How the rounds are played, what is asked of the cluster between them, and the process that does all that."""

    play: Play
    explain: Callable[[str], object]
    ask: Callable[[], object]
    process: int | str


class Day(NamedTuple):
    """Who plays, and how many rounds."""

    through: Callable[[Instance], AbstractContextManager[Through]]
    rounds: int


def run(asked: Day) -> Iterator[Row]:
    """Play the rounds; yield a row at each 24th of them."""
    busy = generate("uniform", jobs=300, nodes=40, gpus=8, seed=1)
    draw = random.Random(1)
    waiting, running = [job.id for job in busy.jobs], list[str]()
    with asked.through(busy) as cluster:
        for number in range(1, asked.rounds + 1):
            gone = [running.pop(draw.randrange(len(running))) for _ in range(min(CHANGES, len(running)))]
            come = [draw.choice(busy.jobs).model_copy(update={"id": f"{number}-{i}"}) for i in range(len(gone))]
            started = cluster.play(gone, come)
            waiting += [job.id for job in come]
            running += sorted(started)
            waiting = [job for job in waiting if job not in started]
            if number % EXPLAINED == 0 and waiting:
                cluster.explain(waiting[0])
            if number % ASKED == 0:
                cluster.ask()
            if number % (asked.rounds // POINTS) == 0:
                mib = round(resident_mib(cluster.process), 1)
                yield {"call": f"after {number} rounds", "rounds": number, "waiting": len(waiting), "mib": mib}


@contextmanager
def through_engine(busy: Instance) -> Iterator[Through]:
    """Play the rounds in this process."""
    with Engine(isolation="thread") as engine:
        engine.load(busy)

        def play(gone: list[str], come: list[Job]) -> set[str]:
            engine.apply(ClusterChanges(release=tuple(gone), add_jobs=tuple(come)))
            plan = engine.place(waiting_only=True, method="stranding", deterministic=True)
            engine.commit(plan)
            return {held.job for held in plan.placements}

        def explained(job: str) -> None:
            snapshot = loads(Instance, dumps(engine.snapshot))
            explain(snapshot, engine.place(method="stranding", prove=False, explain=False), job, time_limit_s=2)

        yield Through(play, explained, lambda: fail(engine.snapshot, "rack", limits=Limits(time_limit_s=2)), "self")


@contextmanager
def through_service(busy: Instance) -> Iterator[Through]:
    """Play the rounds in `placeopt serve` over HTTP on a unix socket, its journal on disk."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), busy) as (path, process):
        client = Client(path)

        def post(name: str, body: Row) -> Any:
            return client.call("POST", f"/v1/{name}", json.dumps(body).encode())

        def play(gone: list[str], come: list[Job]) -> set[str]:
            add = [job.model_dump(mode="json", by_alias=True, exclude_defaults=True) for job in come]
            steps = [{"do": "remove_jobs", "jobs": gone}] * bool(gone) + [{"do": "add_jobs", "jobs": add}] * bool(add)
            if steps:
                post("changes", {"steps": steps})
            status = post("rounds", {"method": "stranding", "deterministic": True, "commit": True})
            while status["state"] in ("queued", "running"):
                time.sleep(0.01)
                status = client.call("GET", f"/v1/rounds/{status['id']}", b"")
            actions = status["commit"]["actions"]
            post("outcome", {"outcomes": [{"action": action["id"], "result": "done"} for action in actions]})
            return set(status["commit"]["committed"])

        def explained(job: str) -> None:
            client.call("GET", f"/v1/explain/{job}", b"")
            client.call("GET", "/v1/snapshot", b"")

        yield Through(play, explained, lambda: post("whatif/fail", {"level": "rack", "time_limit_s": 2}), process)
        client.close()


SPEC = BenchSpec(
    name="memory",
    question="Does memory stay flat over the rounds of a day, one every 30 s, with explanations and what-ifs?",
    rounds={
        "engine, 24 rounds": Day(through_engine, 24),
        "service, 24 rounds": Day(through_service, 24),
        "engine, 2,880 rounds": Day(through_engine, 2880),
        "service, 2,880 rounds": Day(through_service, 2880),
    },
    run=run,
    columns=("round", "call", "waiting", "mib", "load"),
    minutes=20,
)
