"""
Lists of jobs through ``placeopt kubernetes run`` on a real control plane, under one policy after the other.

60 Jobs of 12 shapes come within 20 s to six nodes of four GPUs, and run for 3 to 8 s. What goes wrong: kubelets refuse
the first pod of three jobs; a third of the evicted pods end late; a node is lost for good; API server, etcd and
Prometheus stand still for some seconds; the API server is killed and comes back; running pods are evicted by another;
the driver is killed and begins anew. The driver has a service account with the rights of the manifest. It reads the use
of GPUs from a real Prometheus, where one is installed.

Faults: a pod starts twice, or elsewhere than its mark says; a gang starts in part; a job does not end; the API server
refuses a write of the driver as invalid, or as forbidden for longer than it takes a server to learn of roles.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from campaigns.harness import Campaign, Case
from helpers.driver_process import DriverProcess, Event, fired, happen_in_time
from helpers.kubernetes_lab import DRIVER, KubernetesLab, why_no_kubernetes
from helpers.kubernetes_updates import Refusal
from helpers.live_policies import COPIES, PREDICTED, SYSTEMS, policy_of
from helpers.prometheus_lab import MISSING, Exporter, Server, prometheus
from helpers.real_jobs import SERVICE, SHAPES, prepare, profile_of, submit
from helpers.real_kubelets import RealKubelets
from helpers.start_judge import judge_starts

NUM_JOBS, ARRIVE_S, RUN_S = 60, 20.0, (3.0, 8.0)
NODES = {f"n{i}": 4 for i in range(6)}
LABELS: tuple[dict[str, str], ...] = {}, {"nvidia.com/gpu.product": "A100", "nvidia.com/gpu.memory": "40960"}
"""Of nodes without and with GPU feature discovery."""
UNLUCKY = 3
FAULTS_S = (5.0, 40.0)
LONGEST_S = 300.0
AWAY_S = {"kube-apiserver": 4.0, "etcd": 3.0}
"""How long a daemon stands still; longer than the driver's heartbeats, shorter than what ends its Lease."""
UNMEASURED_S = 8.0
"""Longer than a query of Prometheus may take."""
POLICIES = (*SYSTEMS, "coda", *COPIES, PREDICTED)


class Run:
    """One list of jobs, and what must not be: ``faults``; ``figures``: what was counted."""

    def __init__(self, policy: str, seed: int) -> None:
        self._policy, self._dice = policy, random.Random(seed)
        self.faults: list[str] = []
        self.figures: Counter[str] = Counter()
        self._drivers: list[DriverProcess] = []
        self._sizes: dict[str, int] = {}

    def go(self) -> None:
        """Submit the jobs while things go wrong, and wait for the end."""
        with ExitStack() as stack:
            lab = self._lab = stack.enter_context(KubernetesLab())
            exporter = Exporter()
            stack.callback(exporter.server.shutdown)
            self._kubelets = stack.enter_context(RealKubelets(lab.api, exporter, NODES, self._dice.choice(LABELS)))
            prepare(lab.api)
            self._words = ["kubernetes", "run", "--kubeconfig", str(lab.kubeconfig), "--every", "1s"]
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            profiles = dict.fromkeys(profile_of(shape) for shape in SHAPES.values())
            self._words += ["--policy", policy_of(self._policy, folder, profiles)]
            self._prometheus: Server | None = None
            if MISSING is None:
                self._prometheus = stack.enter_context(prometheus(folder, exporter))
                self._words += ["--telemetry", self._prometheus.url]
            self._drivers.append(DriverProcess(*self._words))
            try:
                self._let_it_happen()
                self._wait_for_the_end()
            finally:
                self._drivers[-1].stop()
            self._judge()

    def _let_it_happen(self) -> None:
        shapes = list(SHAPES) * (NUM_JOBS // len(SHAPES))
        self._dice.shuffle(shapes)
        events: list[Event] = []
        for number, shape in enumerate(shapes):
            self._sizes[f"j{number}"] = SHAPES[shape].together
            arrive = self._submission(f"j{number}", shape, self._dice.uniform(*RUN_S))
            earliest_s = ARRIVE_S / 2 if shape == SERVICE else 0.0  # for services, the cluster shall be full
            events.append((self._dice.uniform(earliest_s, ARRIVE_S), arrive))
        self._kubelets.unlucky = {f"j{number}" for number in self._dice.sample(range(NUM_JOBS), UNLUCKY)}
        troubles = [self._lose_node, self._kill_driver, self._lab.restart_server, *[self._evict_one] * 4]
        troubles += [self._pause(name) for name in AWAY_S]
        if self._prometheus is not None:
            troubles.append(self._stop_measuring)
        events += [(self._dice.uniform(*FAULTS_S), trouble) for trouble in troubles]
        happen_in_time(events, self._until_it_works)

    def _until_it_works(self, happen: Callable[[], None]) -> None:
        ends = time.monotonic() + LONGEST_S
        while True:
            try:
                return happen()
            except (httpx.HTTPError, Refusal):
                if time.monotonic() > ends:
                    raise
                time.sleep(0.5)

    def _submission(self, name: str, shape: str, run_s: float) -> Callable[[], None]:
        seed = self._dice.random()
        return lambda: submit(self._lab.api, name, SHAPES[shape], run_s, random.Random(seed))

    # What goes wrong.

    def _pause(self, name: str) -> Callable[[], None]:
        return lambda: self._lab.pause(name, AWAY_S[name])

    def _stop_measuring(self) -> None:
        if self._prometheus is not None:
            threading.Thread(target=self._prometheus.pause, args=(UNMEASURED_S,)).start()

    def _lose_node(self) -> None:
        """Let a kubelet fall silent; once the node is not ready, say that its machine is off, as an operator does."""
        node = self._dice.choice(sorted(NODES))
        self._kubelets.dead.add(node)
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "off", "effect": "NoExecute"}

        def declare() -> None:
            while True:
                with suppress(httpx.HTTPError, Refusal):
                    found = self._lab.api.call("GET", f"/api/v1/nodes/{node}")
                    if all(one["status"] != "True" for one in found["status"]["conditions"] if one["type"] == "Ready"):
                        found["spec"]["taints"] = [*found["spec"].get("taints", []), taint]
                        self._lab.api.call("PUT", f"/api/v1/nodes/{node}", found)
                        self.figures["lost nodes"] += 1
                        return
                time.sleep(0.5)

        threading.Thread(target=declare, daemon=True).start()

    def _evict_one(self) -> None:
        """Evict a running pod, as one who drains its node does."""
        pods = [found for found in self._kubelets.pods if found["status"]["phase"] == "Running"]
        if pods:
            metadata = {"namespace": "default", "name": self._dice.choice(pods)["metadata"]["name"]}
            path = f"/api/v1/namespaces/default/pods/{metadata['name']}/eviction"
            with suppress(Refusal):  # it has ended meanwhile
                self._lab.api.create(path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})
                self.figures["evicted by others"] += 1

    def _kill_driver(self) -> None:
        self._drivers[-1].kill()
        self._drivers.append(DriverProcess(*self._words))

    # What must hold.

    def _wait_for_the_end(self) -> None:
        end = time.monotonic() + LONGEST_S
        left = ["?"]
        while left and time.monotonic() < end:
            time.sleep(0.5)
            with suppress(httpx.HTTPError):
                jobs = self._lab.api.all("jobs")
                left = [job["metadata"]["name"] for job in jobs if not _is_complete(job)]
        self.figures["ended"] = NUM_JOBS - len(left)
        # a Job makes a pod that was evicted n times anew after 10 s x 2^n, ten minutes at most
        without = [name for name in left if not self._pods_of(name)]
        self.figures["waiting for the Job controller"] = len(without)
        if left := [name for name in left if name not in without]:
            self.faults.append(f"{len(left)} jobs have not ended: {left}; {self._why(left[0])}")

    def _pods_of(self, name: str) -> list[dict[str, Any]]:
        return [found for found in self._kubelets.pods if found["metadata"]["name"].startswith(f"{name}-")]

    def _why(self, name: str) -> str:
        pods = self._pods_of(name)
        about = [f"{p['metadata']['name']} {p['status']['phase']} {p['spec'].get('nodeName', '')}" for p in pods]
        return f"{about}; {self._drivers[-1].rounds[-1]['notes'] if self._drivers[-1].rounds else 'no round'}"

    def _judge(self) -> None:
        writes, bound = [], dict[str, list[str]]()
        forbidden: dict[str, str] = {}  # of a server that has just begun: it knows no roles yet
        for event in self._lab.audit():
            path, body = event["requestURI"].partition("?")[0], event.get("requestObject")
            code = event["responseStatus"]["code"]
            if path.endswith("/binding") and code < 400:
                bound.setdefault(body["metadata"]["uid"], []).append(body["target"]["name"])
            elif event["user"]["username"] == DRIVER and code < 400:
                writes.append((event["verb"], path, body))
                if forbidden.pop(event["verb"], None) is not None:
                    self.figures["forbidden for a moment"] += 1
            elif event["user"]["username"] == DRIVER and code == 403:
                forbidden[event["verb"]] = f"{event['verb']} {path} was refused: {event['responseStatus']}"
            elif event["user"]["username"] == DRIVER and code in (400, 422):
                self.faults.append(f"{event['verb']} {path} was refused: {event['responseStatus']}")
        self.faults += forbidden.values()
        judged = judge_starts(writes, self._sizes, self._kubelets.gone)
        self.faults += judged.faults + self._kubelets.faults
        for uid, nodes in bound.items():
            if nodes != [judged.planned.get(uid)]:
                self.faults.append(f"{uid} was bound to {nodes}, planned on {judged.planned.get(uid)}")
        rounds = [one for driver in self._drivers for one in driver.rounds]
        self.faults += [fault for driver in self._drivers for fault in driver.faults]
        self.figures.update(rounds=len(rounds), starts=judged.actions, undone=judged.undone)
        self.figures["evicted by the driver"] = len(judged.evicted)
        self.figures["refused by kubelets"] = self._kubelets.refused
        self.figures["rounds without measures"] = sum(bool(one["unmeasured"]) for one in rounds)
        self.figures["rounds without the API server"] = sum("the API server:" in one["silent"] for one in rounds)
        self.figures.update({f"{self._policy}: {name}": number for name, number in fired(rounds).items()})


def _is_complete(job: dict[str, Any]) -> bool:
    conditions = job["status"].get("conditions") or []
    return any(one["type"] == "Complete" and one["status"] == "True" for one in conditions)


def cases(seed: int) -> Iterator[Case]:
    """Run one list after the other."""
    for number in count(seed):
        policy = POLICIES[number % len(POLICIES)]
        run = Run(policy, number)
        run.go()
        yield Case(policy, [f"seed {number}, {policy}: {fault}" for fault in run.faults], dict(run.figures))


CAMPAIGN = Campaign(
    "does every job of a real Kubernetes run once, whole, and where its mark says?", cases, 7, 60, why_no_kubernetes
)
