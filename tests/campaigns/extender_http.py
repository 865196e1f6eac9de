"""
kube-scheduler's calls over HTTP, 1,000 pods a seed, on a service that is restarted in between.

Faults: a pod bound twice or elsewhere, an untrue reason, a snapshot that a restart changes, or one that the referee
refuses. What is sent: `helpers.kube_scheduler_run.Run`.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import quantiles

from campaigns.harness import Campaign, Case
from helpers.kube_scheduler_run import Host, Run

PODS, NODES, PARTS = 1000, 300, 5


def cases(seed: int) -> Iterator[Case]:
    """Send one list of pods after the other."""
    for number in count(seed):
        with tempfile.TemporaryDirectory() as folder, Host(Path(folder)) as host:
            run = Run(host, random.Random(number), pods=PODS, nodes=NODES)
            run.go(PARTS)
        figures = {f"{verb}_p99_ms": 1000 * quantiles(seconds, n=100)[98] for verb, seconds in run.seconds.items()}
        figures |= {"calls": run.calls, "bound": len(run.bound), "reasons": run.reasons}
        yield Case("list of pods", [f"seed {number}: {fault}" for fault in run.faults], figures)


CAMPAIGN = Campaign("are kube-scheduler's calls answered truly, and kept over restarts?", cases, 3)
