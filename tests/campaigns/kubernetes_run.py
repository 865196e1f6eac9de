"""
Two drivers of Kubernetes where much goes wrong, under one policy after the other: nothing is started twice,
gangs start whole.

The cluster is the small API server of the tests with its kube-scheduler, kubelets and controller;
`helpers.kubernetes_storm` says what goes wrong.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from campaigns.harness import Campaign, Case
from helpers.kubernetes_storm import Storm

PODS, NODES = 500, 24
POLICIES = ("rounds", "placeopt", "topo-aware-p", "horus-f", "dynamoml", "soda", "genie")
"""Ours, and one of each paper."""


def cases(seed: int) -> Iterator[Case]:
    """Send one storm after the other."""
    for number in count(seed):
        policy = POLICIES[number % len(POLICIES)]
        with tempfile.TemporaryDirectory() as folder:
            found = Storm(Path(folder) / "kubeconfig.json", number, PODS, NODES, policy).run()
        names = ("pods", "ended", "gangs", "actions", "undone", "turns")
        figures = {name: float(getattr(found, name)) for name in names}
        yield Case(policy, [f"seed {number}, {policy}: {fault}" for fault in found.faults], figures)


CAMPAIGN = Campaign("does every pod run once, and every gang as a whole, in a storm of faults?", cases, 5)
