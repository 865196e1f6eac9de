"""Scheduling cycles of many pods, as kube-scheduler calls an extender over HTTP, and what must hold of the answers."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import httpx

from helpers.kube_scheduler import args, binding, pod
from placeopt import Engine, violations
from placeopt.model import Instance

GPUS = 8
"""Of every node."""
GANG = 4
"""Pods of a gang."""


class Run:
    """
    Pods one after the other, in an order of chance: four in ten of gangs, some calls twice, some pods again later.

    ``faults``: What was wrong, in words. ``reasons``: How many reasons of nodes were compared with brute force.
    ``seconds``: Wall time of every call.
    """

    def __init__(self, client: httpx.Client, draw: random.Random, *, pods: int, nodes: int) -> None:
        self.client, self._draw = client, draw
        self._names = [f"n{i}" for i in range(nodes)]
        self.pods = [pod(f"s{i}", draw.choice([1, 1, 2, 4, 8])) for i in range(pods * 6 // 10)]
        for gang in range(pods * 4 // 10 // GANG):
            gpus = draw.choice([1, 2, 8])
            self.pods += [pod(f"g{gang}-{i}", gpus, (f"g{gang}", GANG)) for i in range(GANG)]
        draw.shuffle(self.pods)
        self._order = self.pods + draw.sample(self.pods, len(self.pods) // 5)
        self.bound: dict[str, str] = {}
        self.faults: list[str] = []
        self.seconds: dict[str, list[float]] = {}
        self.reasons = self.calls = 0

    def go(self, begin: float = 0.0, end: float = 1.0) -> None:
        """Send the pods of a part of the order."""
        count = len(self._order)
        for number in range(round(begin * count), round(end * count)):
            self._cycle(number, self._order[number])

    def ask(self, verb: str, body: object) -> Any:
        """Call the extender."""
        self.calls += 1
        began = time.perf_counter()
        reply = self.client.post(f"/k8s/{verb}", json=body)
        assert reply.status_code == 200, reply.text
        self.seconds.setdefault(verb, []).append(time.perf_counter() - began)
        return reply.json()

    def _cycle(self, number: int, one: dict[str, Any]) -> None:
        draw, uid = self._draw, one["metadata"]["uid"]
        sent = draw.sample(self._names, len(self._names) * 29 // 30) if number % 3 else self._names
        answer = self.ask("filter", args(one, sent))
        good = answer["NodeNames"]
        refused = answer["FailedNodes"].keys() | answer["FailedAndUnresolvableNodes"].keys()
        if answer["Error"] or set(good) | refused != set(sent) or set(good) & refused:
            self.faults.append(f"{uid}: {answer['Error'] or 'not every node has one answer'}")
        if number % 10 == 0 and "labels" not in one["metadata"] and uid not in self.bound:
            now = Instance.model_validate_json(self.client.get("/v1/snapshot").content)
            self.faults += wrong_reasons(now, one, answer)
            self.reasons += len(sent)
        if not good:
            return
        scores = self.ask("prioritize", args(one, good))
        best = max(scores, key=lambda entry: int(entry["Score"]))["Host"]
        if draw.random() < 0.1:
            return  # another plugin refused the pod; it comes again, or not
        for _ in range(2 if draw.random() < 0.2 else 1):  # a reply was lost
            why = self.ask("bind", binding(one, best))["Error"]
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
