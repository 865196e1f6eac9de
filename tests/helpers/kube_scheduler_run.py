"""Scheduling cycles of many pods, as kube-scheduler calls an extender over HTTP, and what must hold of the answers."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx

from helpers.kube_scheduler import Bindings, args, binding, node, pod
from placeopt import Engine, violations
from placeopt.documents import dumps
from placeopt.importers import read_kubernetes
from placeopt.model import Instance
from placeopt.service import Service
from placeopt.service.http import HttpServer, parse_address

GPUS = 8
"""Of every node."""
GANG = 4
"""Pods of a gang."""


class Host:
    """
    A service behind a unix socket, and an API server that outlives it; a context manager.

    ``binder``: What creates Bindings after the next start. ``now_s``: Its clock, which the test sets.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.now_s, self.bindings = folder, 1000.0, Bindings()
        self.binder: Any = self.bindings

    def __enter__(self) -> Self:
        state, where = self.folder / "state", parse_address(f"unix:{self.folder}/s", has_tokens=False)
        self.service = Service(state, binder=self.binder, bind_within_s=60, clock=lambda: self.now_s)
        self.server = HttpServer(self.service, where)
        self.server.start()
        transport = httpx.HTTPTransport(uds=f"{self.folder}/s")
        self.client = httpx.Client(transport=transport, base_url="http://localhost", timeout=600)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.server.stop()
        self.service.close()

    def restart(self) -> bool:
        """End and begin anew; whether the snapshot has the same bytes."""
        before = self.client.get("/v1/snapshot").content
        self.__exit__()
        self.__enter__()
        return self.client.get("/v1/snapshot").content == before

    def load(self, names: list[str]) -> None:
        """Load a cluster of these nodes."""
        cluster = dumps(read_kubernetes([node(name) for name in names]))
        reply = self.client.put("/v1/cluster", content=cluster, headers={"content-type": "application/json"})
        assert reply.status_code == 200, reply.text

    def change(self, step: object) -> None:
        """Carry out one step."""
        reply = self.client.post("/v1/changes", json={"steps": [step]})
        assert reply.status_code == 200, reply.text

    def ask(self, verb: str, body: object, status: int = 200) -> Any:
        """Call the extender."""
        reply = self.client.post(f"/k8s/{verb}", json=body)
        assert reply.status_code == status, reply.text
        return reply.json()

    def snapshot(self) -> Instance:
        """Return the cluster."""
        return Instance.model_validate_json(self.client.get("/v1/snapshot").content)


class Run:
    """
    Pods one after the other, in an order of chance: four in ten of gangs, some calls twice, some pods again later.

    Free nodes go on the way, and the service is restarted.

    Attributes
    ----------
    faults
        What was wrong, in words.
    reasons, calls, lost
        How many reasons of nodes were compared with brute force; calls; nodes that are gone.
    seconds
        Wall time of every call, by its verb.
    """

    def __init__(self, host: Host, draw: random.Random, *, pods: int, nodes: int) -> None:
        self._host, self._draw = host, draw
        self._names = [f"n{i}" for i in range(nodes)]
        self.pods = [pod(f"s{i}", draw.choice([1, 1, 2, 4, 8])) for i in range(pods * 6 // 10)]
        for gang in range(pods * 4 // 10 // GANG):
            gpus = draw.choice([1, 2, 8])
            self.pods += [pod(f"g{gang}-{i}", gpus, (f"g{gang}", GANG)) for i in range(GANG)]
        draw.shuffle(self.pods)
        self.bound: dict[str, str] = {}
        self.lost: set[str] = set()
        self.faults: list[str] = []
        self.seconds: dict[str, list[float]] = {}
        self.reasons = self.calls = 0

    def go(self, parts: int) -> None:
        """Load the nodes and send the pods, with so many restarts."""
        self._host.load(self._names)
        order = self.pods + self._draw.sample(self.pods, len(self.pods) // 5)
        for number, one in enumerate(order, 1):
            self._cycle(number, one)
            if number % (len(order) // parts) == 0:
                self._lose_node()
                if not self._host.restart():
                    self.faults.append(f"after pod {number}: a restart changed the snapshot")
        self.faults += overfull(self._host.snapshot(), self._host.bindings.node_of, self.pods)

    def _ask(self, verb: str, body: object) -> Any:
        self.calls += 1
        began = time.perf_counter()
        reply = self._host.ask(verb, body)
        self.seconds.setdefault(verb, []).append(time.perf_counter() - began)
        return reply

    def _lose_node(self) -> None:
        held = {part.node for job in self._host.snapshot().running for part in job.assignments}
        gone = next((name for name in self._names if name not in held | self.lost), None)
        if gone is not None:
            self._host.change({"do": "remove_nodes", "nodes": [gone]})
            self.lost.add(gone)

    def _cycle(self, number: int, one: dict[str, Any]) -> None:
        draw, uid = self._draw, one["metadata"]["uid"]
        sent = draw.sample(self._names, len(self._names) * 29 // 30) if number % 3 else self._names
        answer = self._ask("filter", args(one, sent))
        good = answer["NodeNames"]
        refused = answer["FailedNodes"].keys() | answer["FailedAndUnresolvableNodes"].keys()
        if answer["Error"] or set(good) | refused != set(sent) or set(good) & (refused | self.lost):
            self.faults.append(f"{uid}: {answer['Error'] or 'not every node has one answer, or a lost one'}")
        if number % 10 == 0 and "labels" not in one["metadata"] and uid not in self.bound:
            self.faults += wrong_reasons(self._host.snapshot(), one, answer)
            self.reasons += len(sent)
        if not good:
            return
        scores = self._ask("prioritize", args(one, good))
        best = max(scores, key=lambda entry: int(entry["Score"]))["Host"]
        if draw.random() < 0.1:
            return  # another plugin refused the pod; it comes again, or not
        for _ in range(2 if draw.random() < 0.2 else 1):  # a reply was lost
            why = self._ask("bind", binding(one, best))["Error"]
            if why:
                self.faults.append(f"{uid}: bind: {why}")
        if self.bound.setdefault(uid, best) != best:
            self.faults.append(f"{uid}: bound to {self.bound[uid]} and to {best}")


def wrong_reasons(now: Instance, one: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """Count what is free of each node from the records alone, and compare nodes and reasons of a pod alone."""
    need = int(one["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"])
    held = Counter(part.node for job in now.running for part in job.assignments for _ in part.gpus)
    there = {entry.id for entry in now.cluster.nodes}
    failed = answer["FailedNodes"]
    wrong = [f"{name}: has room" for name in failed if GPUS - held[name] >= need]
    wrong += [f"{name}: has no room" for name in answer["NodeNames"] if GPUS - held[name] < need]
    wrong += [f"{name}: is there" for name in answer["FailedAndUnresolvableNodes"] if name in there]
    expected = {name: f"{GPUS - held[name]} of {need} GPUs have room" for name in failed}
    return wrong + [f"{name}: {why}" for name, why in failed.items() if why != expected[name]]


def overfull(now: Instance, node_of: Mapping[str, str], pods: list[dict[str, Any]]) -> list[str]:
    """Return what the referee refuses of what runs, and nodes with more bound pods than a snapshot or a node holds."""
    with Engine(isolation="thread") as engine:
        engine.load(now)
        plan = engine.place(time_limit_s=0.5, method="fcfs", prove=False, explain=False)
    wrong = [str(found) for found in violations(now, plan)] + [f"{entry} stands" for entry in plan.standing]
    held = Counter(part.node for job in now.running for part in job.assignments for _ in part.gpus)
    sent = {one["metadata"]["uid"]: one["spec"]["containers"][0]["resources"]["requests"] for one in pods}
    bound = Counter[str]()
    for uid, where in node_of.items():
        bound[where] += int(sent[uid]["nvidia.com/gpu"])
    return wrong + [f"{name}: {count} GPUs bound" for name, count in bound.items() if count > min(held[name], GPUS)]
