"""Scenarios whose running jobs are changed, and a reader of their logs that is independent of the simulator."""

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

from helpers.scenarios import log_lines, scenario, timed
from placeopt import violations
from placeopt.build import option
from placeopt.edits import RemoveJobs
from placeopt.model import Cluster, Instance, InstanceRef, Level, Placement, Plan, PolicyRef, Running, Unplaced
from placeopt.scheduling import Scheduling
from placeopt.simulation import Arrival, Scenario


def lively_scenario(seed: int, *, jobs: int = 20, nodes: int = 2, **physics: Any) -> Scenario:
    """
    Draw elastic jobs, gangs, shares of a GPU and CPU jobs of all kinds, without traffic and without slowdowns.

    Some state a priority, some really need more GPU memory than they say. Changes cost time.
    """
    dice = random.Random(seed)
    arrivals = []
    for i in range(jobs):
        shape = dice.choice(["elastic", "elastic", "gang", "share", "cpu"])
        run = dice.randrange(1_000, 40_000)
        fields: dict[str, Any] = {
            "kind": {"cpu": "cpu", "share": "inference"}.get(shape, dice.choice(["training", "inference"])),
            "priority": dice.randrange(3),
            "user": dice.choice(["u", "v"]),
        }
        fields_of_arrival: dict[str, Any] = {}
        if shape == "elastic":
            most = dice.randrange(2, 5)
            fields["options"] = (
                option(workers=most, workers_min=1, value=2 + 3 * most, value_per_worker=3, run_time_ms=run),
            )
            fields_of_arrival["workers_asked"] = dice.randrange(1, most + 1)
            if dice.random() < 0.5:
                fields_of_arrival["speedup_thousandths"] = tuple(1000 + 700 * w for w in range(most))
        elif shape == "gang":
            fields |= {"workers": dice.choice([1, 2]), "gpus": dice.choice([1, 2])}
        elif shape == "share":
            fields |= {"gpu_milli": 500, "gpu_memory_mib": 2000}
            fields_of_arrival["actual_gpu_memory_mib"] = dice.choice([None, 9000, 12_000])
        else:
            fields |= {"gpus": 0, "cpu_millicores": 16_000}
        fields["value"] = dice.randrange(1, 20)
        if "options" in fields:
            del fields["value"]
        fields_of_arrival["actual_run_time_ms"] = dice.choice([None, run])
        arrivals.append(Arrival(job=timed(f"j{i}", dice.randrange(25_000), run, **fields), **fields_of_arrival))
    costs = {"restart_ms": 700, "resize_ms": 300, "memory_failure_ms": 500, **physics}
    return scenario([], nodes=nodes, physics=costs).model_copy(update={"arrivals": tuple(arrivals)})


def audit(world: Scenario, scheduling: Scheduling, path: Path) -> dict[str, int]:
    """
    Read a log as a stranger would: the story of every job, its work, and the referee's word on every round.

    Without slowdowns work is counted again: every job ends at the millisecond by which it is done. Returns how often
    each kind of change stood there.
    """
    physics = world.physics
    arrivals = {arrival.job.id: arrival for arrival in world.arrivals}
    jobs = {name: arrival.job for name, arrival in arrivals.items()}
    waiting: dict[str, None] = {}
    now: dict[str, Placement] = {}
    since: dict[str, int] = {}  # when it goes on
    done: dict[str, Fraction] = {}  # part of the work
    safe: dict[str, Fraction] = {}  # part that a failure leaves
    ended: set[str] = set()
    stopped: set[str] = set()
    withdrawn: set[str] = set()
    cluster = world.cluster
    count = {"start": 0, "stop": 0, "move": 0, "resize": 0, "failure": 0}
    last = 0

    def length(name: str) -> int:
        workers = sum(len(a.workers) for a in now[name].assignments)
        return arrivals[name].actual_ms(now[name].option, workers)

    def leave(name: str, at: int) -> None:
        if not stands(name):
            done[name] += Fraction(max(0, at - since[name]), length(name))
        del now[name]

    def stands(name: str) -> bool:
        chosen = next(candidate for candidate in jobs[name].options if candidate.id == now[name].option)
        workers = sum(len(a.workers) for a in now[name].assignments)
        return scheduling.elastic.rule == "pods" and workers < arrivals[name].asked(chosen)

    def lose(name: str, whole: int) -> None:
        if not physics.keeps_work:
            done[name] = Fraction(0)
        elif physics.checkpoint_ms is not None:
            done[name] = done[name] * whole // physics.checkpoint_ms * Fraction(physics.checkpoint_ms, whole)

    for line in log_lines(path)[1:]:
        at = line["t"]
        assert at >= last, "time goes forward"
        last = at
        match line["e"]:
            case "arrival":
                assert line["job"] not in done
                assert at >= jobs[line["job"]].arrival_ms
                waiting[line["job"]], done[line["job"]] = None, Fraction(0)
            case "end":
                whole = length(line["job"])
                leave(line["job"], at)
                if not world.slowdowns:
                    assert 1 <= done[line["job"]] < 1 + Fraction(3, whole), "neither early nor late"
                ended.add(line["job"])
            case "failure":
                leave(line["job"], at)
                done[line["job"]] = safe[line["job"]]
                waiting[line["job"]] = None
                count["failure"] += 1
            case "edit":
                cluster = world.clusters[line["n"] + 1][1]
                for step in world.events[line["n"]].steps:
                    for name in step.jobs if isinstance(step, RemoveJobs) else ():
                        withdrawn.add(name)
                        waiting.pop(name, None)
                        now.pop(name, None)
                for name in line["stop"]:
                    whole = length(name)
                    leave(name, at)
                    lose(name, whole)
                    waiting[name] = None
                    stopped.add(name)
                    count["stop"] += 1
                    assert name not in ended
                _judge(world, cluster, scheduling, now, waiting)
            case "round":
                assert line["waiting"] == len(waiting)
                sets = {
                    key: [Placement.model_validate(record, strict=False) for record in line.get(key, [])]
                    for key in ("resize", "move", "start")
                }
                assert line["start"] or line.get("stop") or line.get("move") or line.get("resize")
                for name in line.get("stop", []):
                    whole = length(name)
                    leave(name, at)
                    lose(name, whole)
                    waiting[name] = None
                    stopped.add(name)
                assembling = {placement.job for placement in sets["resize"] if stands(placement.job)}
                for kind in ("resize", "move"):
                    for placement in sets[kind]:
                        assert placement != now[placement.job]
                        whole = length(placement.job)
                        leave(placement.job, at)
                        if kind == "move":
                            lose(placement.job, whole)
                for kind, placements in sets.items():
                    for placement in placements:
                        name = placement.job
                        assert name not in now
                        pause = {"resize": physics.resize_ms, "move": physics.restart_ms, "start": 0}[kind]
                        if kind == "start":
                            del waiting[name]
                        if kind == "start" or name in assembling:  # it has not begun yet
                            pause = physics.restart_ms if name in stopped else 0
                        now[name], since[name], safe[name] = placement, at + pause, done[name]
                        if not stands(name):
                            stopped.discard(name)
                for kind in ("stop", "move", "resize", "start"):
                    count[kind] += len(line.get(kind, []))
                _judge(world, cluster, scheduling, now, waiting)
            case "over":
                assert line["stranded"] == []
    assert not ended & withdrawn, "a withdrawn job never ends"
    assert ended | withdrawn == set(jobs), "no job is lost"
    assert not now
    return count


def _judge(
    world: Scenario, cluster: Cluster, scheduling: Scheduling, now: dict[str, Placement], waiting: dict[str, None]
) -> None:
    """Ask the referee about a state of the cluster; of a part of a gang as of a gang of that size."""
    jobs = {arrival.job.id: arrival.job for arrival in world.arrivals}
    for name, placement in now.items():
        placed = sum(len(a.workers) for a in placement.assignments)
        if scheduling.elastic.rule == "pods" and jobs[name].options[0].workers_min is None:
            (gang,) = jobs[name].options
            jobs[name] = jobs[name].model_copy(update={"options": (gang.model_copy(update={"workers": placed}),)})
    held = tuple(
        Running(job=placement.job, option=placement.option, assignments=placement.assignments)
        for placement in now.values()
    )
    here = tuple(jobs[name] for name in (*now, *waiting))
    round_ = Instance(cluster=cluster, jobs=here, running=held, slowdowns=world.slowdowns, policy=scheduling.policy)
    plan = Plan(
        instance=InstanceRef(name=round_.name, digest=round_.digest, revision=0),
        policy=PolicyRef(name=round_.policy.name, digest=round_.policy.digest, values=round_.policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=0, bound=None),),
        gap=None,
        placements=tuple(now.values()),
        unplaced=tuple(Unplaced(job=name, reason="outvoted", detail="") for name in waiting),
    )
    assert violations(round_, plan) == []
