"""Whether a pod fits on nodes once the pods that kube-scheduler would preempt there are gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placeopt.importers.json_entry import JsonEntry
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Job


@dataclass(frozen=True)
class Victims:
    """What kube-scheduler would preempt on a node."""

    uids: tuple[str, ...]
    pdb_violations: int

    def meta(self) -> dict[str, Any]:
        """Return it as ``MetaVictims``."""
        return {"Pods": [{"UID": uid} for uid in self.uids], "NumPDBViolations": self.pdb_violations}


def read_victims(body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Victims]]:
    """Return pod and victims by node of an ``ExtenderPreemptionArgs``; raises `BadInput`."""
    entry = JsonEntry("body", dict(body))
    by_uid = "NodeNameToMetaVictims" in entry
    nodes = entry.entry("NodeNameToMetaVictims" if by_uid else "NodeNameToVictims")
    found = {}
    for name in nodes.names():
        victims = nodes.entry(name)
        uids = tuple(
            pod.text("UID") if by_uid else pod.entry("metadata").text("uid") for pod in victims.entries("Pods")
        )
        found[name] = Victims(uids, victims.integer("NumPDBViolations", 0, 2**62, 0))
    metadata = entry.entry("Pod").entry("metadata")
    metadata.text("uid")
    pod: dict[str, Any] = entry.raw("Pod")
    return pod, found


def nodes_with_room(instance: Instance, job: Job, victims: Mapping[str, set[str]]) -> set[str]:
    """
    Return the nodes with room for the job once their victims, ids of running jobs, are gone.

    Nodes are judged together where no victim of one is on another of them, else one by one: a gang that is a victim on
    one node only frees the others as well.
    """
    on = {held.job: {part.node for part in held.assignments} for held in instance.running}
    together = {
        node: jobs
        for node, jobs in victims.items()
        if all(not (on.get(name, set()) - {node}) & victims.keys() for name in jobs)
    }
    parts = [together, *({node: jobs} for node, jobs in victims.items() if node not in together)]
    good: set[str] = set()
    for part in parts:
        if not part:
            continue
        gone = set().union(*part.values())
        others = tuple(one for one in instance.jobs if one.id not in gone and one.id != job.id)
        running = tuple(held for held in instance.running if held.job not in gone)
        with Engine(isolation="thread") as engine:
            engine.load(instance.model_copy(update={"jobs": (*others, job), "running": running}))
            good.update(ranked.node for ranked in engine.rank(job.id, list(part)).nodes)
    return good
