"""
Engines with a cluster loaded, random reports to them, and what each of them must be: a fresh load of its snapshot.

It decides as an engine does that has just loaded its snapshot, and the referee agrees.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from placeopt import Engine, Instance, PlaceoptError, Plan, audit, violations
from placeopt.build import instance, placement
from placeopt.edits import (
    AddDomains,
    AddJobs,
    AddMachines,
    Drain,
    Fail,
    PutNodes,
    RemoveHolds,
    RemoveNodes,
    SetPolicy,
    Start,
    Step,
    Stop,
)
from placeopt.live_cluster import FLAGS, ClusterChanges
from placeopt.model import Domain, Job, Node, Placement, Policy, Running, Toleration
from strategies import Choice


def engine_of(*args: Any, **fields: Any) -> Engine:
    """Load an instance, or what ``build.instance`` makes of the arguments."""
    engine = Engine(isolation="thread")
    engine.load(args[0] if args and isinstance(args[0], Instance) else instance(*args, **fields))
    return engine


def update(engine: Engine, nodes: Any = None, priority: Any = None, **changes: Any) -> None:
    """Report changes of a cluster; a node is a record, ``drain``, ``undrain``, or None as it goes."""
    if isinstance(nodes, dict):
        there = {node.id: node for node in engine.snapshot.cluster.nodes}
        for name, change in nodes.items():
            if change in ("drain", "undrain") and name in there:
                nodes = {**nodes, name: there[name].model_copy(update={"drained": change == "drain"})}
    changes |= {"nodes": {} if nodes is None else nodes, "priorities": {} if priority is None else priority}
    engine.apply(ClusterChanges(**changes))


def release(engine: Engine, job: str) -> None:
    """Report that a running job ended."""
    engine.apply(ClusterChanges(release=(job,)))


def undo(engine: Engine, *jobs: str) -> None:
    """Let running jobs wait again."""
    engine.edit([Stop(do="stop", jobs=jobs)])


def fail_node(engine: Engine, node: str, *, remove: bool = False) -> tuple[Job, ...]:
    """Drain a node, or remove it; return the jobs that ran there and wait again."""
    step = RemoveNodes(do="remove_nodes", nodes=(node,)) if remove else Drain(do="drain", nodes=(node,), stop=True)
    return tuple(engine.job(job)[0] for job in engine.edit([step]))


def fail_gpu(engine: Engine, node: str, gpu: int) -> tuple[Job, ...]:
    """Let a GPU fail; return the jobs that ran on it and wait again."""
    stopped = engine.edit([Fail(do="fail", level="gpu", domains=(f"{node}/gpu{gpu}",))])
    return tuple(engine.job(job)[0] for job in stopped)


def repair_gpu(engine: Engine, node: str, gpu: int) -> None:
    """Put a failed GPU into use again."""
    engine.edit([RemoveHolds(do="remove_holds", holds=(engine.snapshot.failed_gpus[node, gpu].id,))])


def set_policy(engine: Engine, policy: Policy) -> None:
    """Go on under another policy."""
    engine.edit([SetPolicy(do="set_policy", fields=policy.model_dump(mode="json", by_alias=True))])


def places(plan: Plan | Instance) -> dict[str, list[tuple[str, list[int]]]]:
    """Return the nodes and GPUs of every job that is placed, or runs."""
    held = plan.placements if isinstance(plan, Plan) else plan.running
    return {p.job: [(a.node, [int(gpu) for gpu in a.gpus]) for a in p.assignments] for p in held}


def runs(engine: Engine) -> list[str]:
    """Return the ids of the running jobs, in order."""
    return [held.job for held in engine.snapshot.running]


def refuses(engine: Engine, cases: Iterable[tuple[str, Callable[[Engine], object]]]) -> None:
    """Each call is refused in these words, and nothing changes."""
    for words, call in cases:
        before, state, revision = engine.snapshot, engine.snapshot.model_dump(), engine.revision
        with pytest.raises(PlaceoptError, match=words) as refused:
            call(engine)
        assert type(refused.value).__name__ in ("BadInput", "BadArgument", "Unsupported"), refused.value
        assert (engine.snapshot.model_dump(), engine.revision) == (state, revision), words
        assert engine.snapshot is before, words
    assert_as_if_fresh(engine)


def borrowed_jobs(choice: Choice, snapshot: Instance) -> list[Job]:
    """Jobs of the cluster's own kinds and some of new ones, under new names."""
    made = []
    for i in range(choice.number(1, 2)):
        model = choice.pick(snapshot.jobs) if snapshot.jobs else Job(id="plain")
        changed: dict[str, Any] = {"id": f"new-{len(snapshot.jobs) + i}-{choice.number(0, 10**6)}"}
        if choice.chance(0.3):
            changed["arrival_ms"] = choice.number(0, 99)
            model = model.with_conditions(tolerations=(Toleration(key="old", operator="Exists"),))
        if choice.chance(0.2):
            model = model.with_conditions(nodes_allowed=(choice.pick(snapshot.cluster.nodes).id,))
        made.append(model.model_copy(update=changed))
    return made


def changed_node(choice: Choice, snapshot: Instance) -> dict[str, Node | str | None]:
    """A change of one node: drained, replaced, added or taken away."""
    node, extra = choice.pick(snapshot.cluster.nodes), f"extra-{choice.number(0, 10**6)}"
    machine = choice.pick(snapshot.cluster.machines).id
    domain = choice.pick([None, *(one.id for one in snapshot.cluster.domains)])
    changes: list[dict[str, Node | str | None]] = [
        {node.id: "drain"},
        {node.id: "undrain"},
        {node.id: None},
        {node.id: node.model_copy(update={"machine": machine})},
        {node.id: node.model_copy(update={"domain": domain})},
        {extra: node.model_copy(update={"id": extra, "drained": False})},
    ]
    return choice.pick(changes)


def stolen_place(choice: Choice, snapshot: Instance, waiting: list[str]) -> tuple[Placement, Job]:
    """Where a job might run that someone else started, be there room or not, and its record, sometimes of a new one."""
    gpus = {machine.id: len(machine.gpus) for machine in snapshot.cluster.machines}
    job = choice.pick([job for job in snapshot.jobs if job.id in waiting] or [Job(id="plain")])
    option = choice.pick(job.options)
    where = []
    for _ in range(option.workers):
        node = choice.pick(snapshot.cluster.nodes)
        where.append((node.id, choice.shuffled(range(gpus[node.machine]))[: option.demand.gpus]))
    if choice.chance(0.5):
        job = job.model_copy(update={"id": f"adopted-{choice.number(0, 10**6)}"})
    return placement(job, where, option=option.id), job


def new_types(choice: Choice, snapshot: Instance) -> tuple[Step, ...]:
    """A new machine type, a domain, a node that has both, and jobs."""
    name, old = f"new-{choice.number(0, 10**6)}", choice.pick(snapshot.cluster.machines)
    parent = choice.pick([None, *(domain.id for domain in snapshot.cluster.domains)])
    larger = old.model_copy(update={"id": name, "memory_mib": old.memory_mib + 1024})
    return (
        AddMachines(do="add_machines", machines=(larger,)),
        AddDomains(do="add_domains", domains=(Domain(id=name, level=choice.pick(["pod", "rack"]), parent=parent),)),
        PutNodes(do="put_nodes", nodes=(Node(id=name, machine=name, domain=name),)),
        AddJobs(do="add_jobs", jobs=tuple(borrowed_jobs(choice, snapshot))),
    )


def step(choice: Choice, engine: Engine, *, failing_gpus: bool = False) -> None:
    """Do something to the cluster; what is refused must change nothing."""
    snapshot, revision = engine.snapshot, engine.revision
    work = snapshot.running
    held_jobs = [held.job for held in work]
    waiting = [job.id for job in snapshot.jobs if job.id not in {held.job for held in snapshot.running}]
    try:
        match choice.number(0, 13 if failing_gpus else 12):
            case 0:
                update(engine, add_jobs=borrowed_jobs(choice, snapshot))
            case 1:
                update(engine, remove_jobs=choice.some(waiting, 0.3))
            case 2:
                update(engine, nodes=changed_node(choice, snapshot))
            case 3:
                more = {"add_jobs": borrowed_jobs(choice, snapshot), "remove_jobs": waiting[:1]}
                update(engine, nodes=changed_node(choice, snapshot), now_ms=snapshot.now_ms + 5, **more)
            case 4:
                for name in choice.some([held.job for held in snapshot.running], 0.4):
                    release(engine, name)
            case 5:
                plan = engine.place(choice.some(waiting, 0.6))
                assert violations(engine.snapshot, plan) == audit(engine.snapshot, plan) == []
                engine.commit(plan, movable=True, shrinkable=True)
            case 6:
                for name in choice.some(held_jobs, 0.3):
                    undo(engine, name)
            case 7:
                failed = choice.pick(snapshot.cluster.nodes).id
                there = [held.job for held in work if failed in {at.node for at in held.assignments}]
                back = fail_node(engine, failed, remove=choice.chance(0.5))
                assert sorted(job.id for job in back) == sorted(there)
            case 8:
                where, job = stolen_place(choice, snapshot, waiting)
                add = () if job.id in waiting else (AddJobs(do="add_jobs", jobs=(job,)),)
                held = Running(**dict(where), started_ms=3, movable=True)
                engine.edit((*add, Start(do="start", running=(held,))))
            case 9:
                flags = {name: {flag: choice.chance(0.5) for flag in FLAGS} for name in held_jobs}
                priority = {name: choice.number(-3, 3) for name in [*waiting, *held_jobs]}
                update(engine, flags=flags, priority=priority)
            case 10:
                engine.edit(new_types(choice, snapshot))
            case 11:
                changes = snapshot.policy.changes.model_copy(update={"moves_max": choice.number(0, 2)})
                mode, most = choice.pick([("exclusive", None), ("fraction", None), ("overcommit", 3)])
                other = {"changes": changes, "share_mode": mode, "jobs_per_gpu_max": most}
                set_policy(engine, snapshot.policy.model_copy(update=other))
            case 12:
                plan = engine.place(method="stranding", deterministic=True)
                engine.commit(plan, preemptible=True, movable=choice.some(waiting))
            case _:
                fail_or_repair(choice, engine)
    except PlaceoptError:
        assert (engine.revision, engine.snapshot.model_dump()) == (revision, snapshot.model_dump())


def fail_or_repair(choice: Choice, engine: Engine) -> None:
    """Let a GPU fail, which stops all that use it, or repair it."""
    now = engine.snapshot
    node = choice.pick(now.cluster.nodes)
    gpus = next(len(machine.gpus) for machine in now.cluster.machines if machine.id == node.machine)
    gpu = choice.number(0, max(gpus - 1, 0))
    there = {held.job for held in now.running for at in held.assignments if at.node == node.id and str(gpu) in at.gpus}
    if (node.id, gpu) in now.failed_gpus:
        repair_gpu(engine, node.id, gpu)
    else:
        assert {job.id for job in fail_gpu(engine, node.id, gpu)} == there


def decisions(engine: Engine) -> object:
    """Return what an engine decides: about each waiting job beside the others, and a whole round."""
    waiting = [job.id for job in engine.snapshot.jobs if job.id not in runs(engine)]
    found: list[object] = []
    whole = {"deterministic": True, "warm": False, "prove": False, "time_limit_s": 60}  # the clock ends nothing
    for jobs, options in ((waiting, {}), (None, whole)):
        try:
            plan = engine.place(jobs, method="best-fit", **options)
            found.append((plan.placements, plan.unplaced, plan.standing, plan.levels))
        except PlaceoptError as refused:
            found.append(str(refused))
    return found


def assert_as_if_fresh(engine: Engine) -> None:
    """The snapshot can be written and read, and an engine that loads it decides the same."""
    again = Instance.model_validate_json(engine.snapshot.model_dump_json(by_alias=True))
    assert again.digest == engine.snapshot.digest
    with engine_of(again) as fresh:
        assert decisions(engine) == decisions(fresh)
