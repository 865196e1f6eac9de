"""
kube-scheduler's calls over HTTP, 1,000 pods a seed, on a service that is restarted in between.

The calls that kube-scheduler sends, one after the other, over a unix socket; the journal on disk. Four pods in ten are
of gangs of 4, their pods out of order; a bind in five is sent twice, a pod in five comes again, and one in ten is
refused by another plugin. Faults: a pod bound twice or elsewhere, an untrue reason, a snapshot that a restart changes,
or one that the referee refuses.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import quantiles

import httpx

from campaigns.harness import Campaign, Case
from helpers.kube_scheduler import Bindings, node
from helpers.kube_scheduler_run import Run, overfull
from placeopt.formats import dumps, read_kubernetes
from placeopt.model import Instance
from placeopt.service import Service
from placeopt.service.http import HttpServer, parse_address

PODS, NODES = 1000, 300
PARTS = 5
"""Of a run; the service is restarted after each."""


def cases(seed: int) -> Iterator[Case]:
    """Run one list of pods after the other."""
    for number in count(seed):
        yield one_run(number)


def one_run(seed: int) -> Case:
    """Send the calls of a list of pods, in parts."""
    bindings = Bindings()
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        where = parse_address(f"unix:{folder}/s", has_tokens=False)
        cluster = dumps(read_kubernetes([node(f"n{i}") for i in range(NODES)]))
        draw, run, snapshot = random.Random(seed), None, b""
        for part in range(PARTS + 1):
            with Service(Path(folder) / "state", binder=bindings) as service:
                if part == 0:
                    service.call("put_cluster", cluster)
                elif service.call("snapshot") != snapshot:
                    faults.append(f"restart {part}: another snapshot")
                if part < PARTS:
                    with HttpServer(service, where) as server:
                        transport = httpx.HTTPTransport(uds=str(server.address).removeprefix("unix:"))
                        with httpx.Client(transport=transport, base_url="http://localhost", timeout=600) as client:
                            run = run or Run(client, draw, pods=PODS, nodes=NODES)
                            run.client = client
                            run.go(part / PARTS, (part + 1) / PARTS)
                snapshot = service.call("snapshot")
    assert run is not None
    faults += run.faults + overfull(Instance.model_validate_json(snapshot), bindings.node_of, run.pods)
    figures = {f"{verb}_p99_ms": 1000 * quantiles(seconds, n=100)[98] for verb, seconds in run.seconds.items()}
    figures |= {"calls": run.calls, "bound": len(bindings.node_of), "reasons": run.reasons}
    return Case("list of pods", [f"seed {seed}: {fault}" for fault in faults], figures)


CAMPAIGN = Campaign("are kube-scheduler's calls answered truly, and kept over restarts?", cases, 3)
