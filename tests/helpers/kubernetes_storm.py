"""
A cluster in which much goes wrong while two drivers place gated pods, and what must hold all the same.

Other writers change pods between reading and patching (409), answers are lost, the server is away, history is forgotten
(410), nodes go and come back, a kubelet admits nothing, waiting pods are deleted, the Lease is taken away, drivers end
and begin anew. Pods run for a while and end; gangs end together.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Self

from helpers.kubelets import Runs, ends
from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import Cluster, gang, node, pod, write_kubeconfig
from helpers.kubernetes_updates import Refusal
from helpers.start_judge import judge_starts
from placeopt import Engine
from placeopt.drivers import Unreachable
from placeopt.drivers.kubernetes import Api, Driver, KubernetesOptions, Lease
from placeopt.scheduling import named_policy

LWS = "leaderworkerset.sigs.k8s.io/"
SIZES = ((1, 1), (1, 2), (1, 4), (2, 2), (3, 4), (4, 8), (8, 1), (1, 8))
"""Pods of a job, and GPUs of each."""
RUNS_S = 0.4
MOST_TURNS = 2000


class Storm:
    """
    One run; ``pods``: at least so many, in jobs of `SIZES`; ``policy``: by name, under which they are placed.

    Attributes
    ----------
    faults
        What must not be; empty if all held.
    pods, gangs, ended
        What was submitted, and how many pods ended.
    turns, events
        Of the drivers; what went wrong, and how often.
    actions, undone
        Starts of jobs, and those that were not completed.
    """

    def __init__(self, config: Path, seed: int, pods: int, nodes: int, policy: str = "rounds") -> None:
        self.policy = policy
        self.faults: list[str] = []
        self.events = Counter[str]()
        self.pods = self.gangs = self.ended = self.turns = self.actions = self.undone = 0
        self._config, self._draw = config, random.Random(seed)
        self._pods, self._names = pods, [f"n{i}" for i in range(nodes)]
        self.api = KubernetesApi()
        self.cluster = Cluster(self.api)
        self._calm = False
        self._removed: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._runs = Runs(_job, _size, lambda found: RUNS_S)
        self._holders = 0

    def run(self) -> Self:
        """Submit the jobs, let it storm until half of them have ended, and then until all have."""
        with self.api, self.cluster:
            write_kubeconfig({"server": self.api.url}, self._config)
            self._add_nodes()
            jobs = self._jobs()
            self.api.before, self.api.after = self._before, self._after
            drivers = [_Connected(self) for _ in range(2)]
            try:
                while self.turns < MOST_TURNS and (jobs or self.ended < self.pods):
                    for _ in range(-(-len(jobs) // 10)):
                        self.cluster.submit(*jobs.pop())
                    if self.ended > self._pods // 2:
                        self._calm_down()
                    else:
                        self._event(drivers)
                    for one in drivers:
                        one.turn()
                    self.turns += 1
                    self._end_those_that_ran()
                    time.sleep(0.02)
            finally:
                for one in drivers:
                    one.close()
        self._judge()
        return self

    def _jobs(self) -> list[list[dict[str, Any]]]:
        jobs: list[list[dict[str, Any]]] = []
        while self.pods < self._pods:
            count, gpus = self._draw.choice(SIZES)
            name = f"j{len(jobs)}"
            jobs.append([pod(name, gpus)] if count == 1 else gang(name, count, gpus))
            self.pods += count
            self.gangs += count > 1
            self._sizes[name] = count
        return jobs

    # What goes wrong.

    def _happens(self, what: str, chance: float) -> bool:
        """Draw whether something happens, and count it."""
        happens = self._draw.random() < chance
        self.events[what] += happens
        return happens

    def _before(self, method: str, path: str, body: Any) -> None:
        if self._calm or "/leases" in path:
            return
        name = path.split("/pods/")[-1].split("/")[0]
        patched = method == "PATCH" and self.api.get("pods", name)
        if patched and self._happens("409: written by another", 0.04):
            self.api.change("pods", name, lambda found: found["metadata"].setdefault("labels", {}).update(x=path))
        elif patched and patched["spec"].get("schedulingGates") and self._happens("pod deleted while patched", 0.005):
            self._remove_pod(name)
        elif self._happens("request lost", 0.01):
            raise ConnectionResetError
        elif self._happens("500", 0.01):
            raise Refusal(500, "InternalError", "etcdserver: request timed out")
        elif self._happens("429", 0.01):
            raise Refusal(429, "TooManyRequests", "too many requests")

    def _after(self, method: str, path: str, body: Any) -> None:
        if not self._calm and "/leases" not in path and self._happens("answer lost", 0.01):
            raise ConnectionResetError

    def _event(self, drivers: list[_Connected]) -> None:
        names = self._there()
        gated = [found["metadata"]["name"] for found in self.api.all("pods") if found["spec"].get("schedulingGates")]
        if self._happens("410: history forgotten", 0.05):
            self.api.compact()
        elif self._happens("server away", 0.03):
            self.api.down = True
            self.api.cut_watches()
            for one in drivers:
                one.turn()
            self.api.down = False
        elif len(names) > len(self._names) // 2 and self._happens("node gone", 0.04):
            self._lose_node(self._draw.choice(names))
        elif len(names) < len(self._names) and self._happens("node back", 0.06):
            self._add_nodes(1)
        elif self._happens("a kubelet that admits nothing", 0.04):
            self.cluster.refusing = {self._draw.choice(names)}
        elif self._happens("all kubelets admit again", 0.06):
            self.cluster.refusing = set()
        elif self._happens("Lease taken away", 0.02):
            self._take_lease()
        elif self._happens("driver killed", 0.04):
            number = self._draw.randrange(2)
            drivers[number].close()
            drivers[number] = _Connected(self)
        elif gated and self._happens("waiting pod deleted", 0.06):
            self._remove_pod(self._draw.choice(gated))

    def _calm_down(self) -> None:
        self._calm = True
        self.cluster.refusing = set()
        self._add_nodes()

    def _there(self) -> list[str]:
        return [found["metadata"]["name"] for found in self.api.all("nodes")]

    def _add_nodes(self, most: int | None = None) -> None:
        """Add nodes that are not there."""
        there = set(self._there())
        for name in [name for name in self._names if name not in there][:most]:
            self.api.add("nodes", node(name))

    def _remove_pod(self, name: str) -> None:
        with self.api.lock:
            found = self.api.get("pods", name)
            if found is not None:
                self._removed.add(found["metadata"]["uid"])
                self.api.remove("pods", name)

    def _lose_node(self, name: str) -> None:
        with self.api.lock:
            self.api.remove("nodes", name)
            for found in self.api.all("pods"):
                if found["spec"].get("nodeName") == name and found["status"]["phase"] in ("Running", "Pending"):
                    self._remove_pod(found["metadata"]["name"])

    def _take_lease(self) -> None:
        self._holders += 1
        if self.api.get("leases", "placeopt", "placeopt"):
            spec = {"holderIdentity": f"other-{self._holders}", "leaseDurationSeconds": 1}
            self.api.change("leases", "placeopt", lambda found: found["spec"].update(spec), "placeopt")

    def _end_those_that_ran(self) -> None:
        """Pods end once all of their job have run for a while."""
        for pods in self._runs.over(self.api.all("pods")):
            with self.api.lock:
                if all(self.api.get("pods", found["metadata"]["name"]) for found in pods):
                    for found in pods:
                        self.api.change("pods", found["metadata"]["name"], ends)
                    self.ended += len(pods)

    # What must hold.

    def _judge(self) -> None:
        if self.ended != self.pods:
            self.faults.append(f"{self.ended} of {self.pods} pods ended")
        rejected = {p["metadata"]["uid"] for p in self.api.all("pods") if p["status"]["phase"] == "Failed"}
        found = judge_starts(self.api.writes, self._sizes, self._removed | rejected)
        self.faults += found.faults
        self.faults += [f"{uid} bound to {nodes}" for uid, nodes in self.cluster.bindings.items() if len(nodes) > 1]
        self.actions, self.undone = found.actions, found.undone


class _Connected:
    """A driver with a Lease; it may be killed at any moment."""

    def __init__(self, storm: Storm) -> None:
        self._storm = storm
        self._stop = threading.Event()
        self._engine = Engine()
        self._driver: Driver | None = None
        self._lease: Lease | None = None

    def turn(self) -> None:
        if self._driver is None:
            try:
                api = Api(str(self._storm._config))
                rules = named_policy(self._storm.policy)
                options = KubernetesOptions(every_s=1.0, settle_s=0.0, bind_s=1.5, refused_s=0.2, policy=rules)
                self._driver = Driver(api, self._engine, options, self._stop)
            except Unreachable:
                return
            self._storm._holders += 1
            holder = f"driver-{self._storm._holders}"
            self._lease = Lease(api, api.namespace, holder, self._stop, duration_s=1.0, renew_s=0.2)
            self._lease.start()
            self._driver.lease = self._lease
        report = self._driver.turn()
        self._storm.events["turns that began without the Lease"] += any("driver is" in n for n in report.remarks)

    def close(self) -> None:
        self._stop.set()
        self._engine.close()


def _job(found: dict[str, Any]) -> str:
    """Return the job of a pod."""
    name: str = found["metadata"]["name"]
    return (found["metadata"].get("labels") or {}).get(f"{LWS}name") or name


def _size(found: dict[str, Any]) -> int:
    return int((found["metadata"].get("annotations") or {}).get(f"{LWS}size", 1))
