"""Rounds read from random clusters, beside the filters of Kubernetes' scheduler, written down a second time."""

from collections.abc import Iterator
from typing import Any

import placeopt
from helpers.kubernetes_objects import read
from helpers.kubernetes_scheduler import Scheduler, random_cluster
from helpers.node_conditions import chosen
from placeopt.model import Instance

SEEDS = range(50)
"""400 were run once, in two minutes: all alike."""


def clusters() -> Iterator[tuple[int, Instance, Scheduler, dict[str, list[dict[str, Any]]]]]:
    """Yield seed, round, scheduler with what runs, and the pods of each job that waits."""
    for seed in SEEDS:
        nodes, running, waiting = random_cluster(seed)
        scheduler = Scheduler(nodes)
        for one in running:
            scheduler.bind(one, one["spec"]["nodeName"])
        pods: dict[str, list[dict[str, Any]]] = {}
        for one in waiting:
            name = one["metadata"]["labels"].get("jobset.sigs.k8s.io/jobset-name", one["metadata"]["name"])
            pods.setdefault(f"default/{name}", []).append(one)
        yield seed, read(*nodes, *running, *waiting), scheduler, pods


def test_the_scheduler_takes_every_plan() -> None:
    """
    No plan puts a pod where a filter refuses it.

    The pods of a plan come in the order in which the scheduler takes them, so that a gang's first pod may be there when
    its others need it; each finds its node open.
    """
    placed = 0
    for seed, round_, scheduler, pods in clusters():
        running = {one.job for one in round_.running}
        plan = placeopt.solve(round_, method="stranding", time_limit_s=30)
        todo = []
        for one in plan.placements:
            nodes = [part.node for part in one.assignments for _ in part.workers]
            todo += [] if one.job in running else list(zip(pods[one.job], nodes, strict=True))
        placed += len(todo)
        while todo:
            ready = next((i for i, (one, name) in enumerate(todo) if scheduler.fits(one, name)), None)
            assert ready is not None, (seed, [(one["metadata"]["name"], name) for one, name in todo])
            scheduler.bind(*todo.pop(ready))
    assert placed > len(SEEDS) / 2


def test_every_node_is_open_that_the_scheduler_would_take() -> None:
    """For single pods, the nodes of the round are those of the filters, no more and no less."""
    asked = taken = 0
    for seed, round_, scheduler, pods in clusters():
        for job in round_.jobs:
            if len(pods.get(job.id, [])) != 1:
                continue
            alone = round_.model_copy(
                update={"jobs": tuple(one for one in round_.jobs if one.id == job.id or one.id not in pods)}
            )
            for node in round_.cluster.nodes:
                here = chosen(round_, job, node)
                one = job.with_conditions(nodes_allowed=(node.id,) if here else ())
                only = alone.model_copy(update={"jobs": tuple(one if o.id == job.id else o for o in alone.jobs)})
                plan = placeopt.solve(only, method="stranding", time_limit_s=30)
                fits = any(placement.job == job.id for placement in plan.placements)
                assert fits == scheduler.fits(pods[job.id][0], node.id), (seed, job.id, node.id)
                asked, taken = asked + 1, taken + fits
    assert taken > 50
    assert asked - taken > 50
