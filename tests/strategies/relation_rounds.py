"""Rounds of jobs with relations to each other, for `helpers.relation_oracle`."""

from __future__ import annotations

from placeopt import Instance, build
from placeopt.model import Changes, Demand, Domain, Group, Job, LabelExpression, Option, Policy, Relation, Weights
from strategies.choice import Choice

LEVELS = ("node", "zone", "disk")
"""The last is a label that some nodes have."""


def make_relation_round(choice: Choice, *, running: bool = False) -> Instance:
    """Return a round on up to four nodes in zones, with up to four jobs, and relations that several of them share."""
    zones = [Domain(id=f"z{i}", level="zone") for i in range(choice.number(1, 2))]
    nodes = [
        build.node(
            f"n{i}",
            choice.pick(("m2", "m1")),
            domain=None if choice.chance(0.1) else choice.pick(zones).id,
            labels={"disk": choice.pick(("a", "b"))} if choice.chance(0.7) else {},
            drained=choice.chance(0.05),
        )
        for i in range(choice.number(2, 4))
    ]
    machines = [build.machine(f"m{i}", gpus=i) for i in (1, 2)]
    known = [_relation(choice) for _ in range(choice.number(1, 3))]
    jobs = [_job(choice, f"j{i}", known, len(nodes)) for i in range(choice.number(1, 4))]
    changes = Changes(
        moves_max=choice.number(0, 2),
        preemptions_max=choice.number(0, 2),
        move_price=choice.number(0, 2),
        preemption_price=choice.number(0, 2),
    )
    weights = Weights(communication=0, interference=0, fragmentation=0, resource=1000)
    policy = Policy(weights=weights, changes=changes, share_mode="exclusive")
    round_ = build.instance(nodes, jobs, machines=machines, domains=zones, policy=policy)
    return _with_running(choice, round_) if running else round_


def _relation(choice: Choice) -> Relation:
    return Relation(
        kind=choice.pick(("apart", "near")),
        level=choice.pick(LEVELS),
        selector=tuple(_expression(choice) for _ in range(choice.pick((1, 1, 1, 2, 0)))),
        weight=choice.maybe(0.4, 1, 3),
    )


def _expression(choice: Choice) -> LabelExpression:
    operator = choice.pick(("In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return LabelExpression(key="tier", operator=operator, values=(choice.pick(("1", "2")),))
    if operator in ("Exists", "DoesNotExist"):
        return LabelExpression(key=choice.pick(("app", "tier")), operator=operator)
    return LabelExpression(key="app", operator=operator, values=tuple(choice.some(("a", "b"))) or ("a",))


def _job(choice: Choice, name: str, known: list[Relation], nodes: int) -> Job:
    labels = {}
    if choice.chance(0.85):
        labels["app"] = choice.pick(("a", "b"))
    if choice.chance(0.3):
        labels["tier"] = choice.pick(("1", "2", "x"))
    value, most = choice.number(0, 5), 3 if nodes < 4 else 2
    if choice.chance(0.15):
        groups = tuple(
            Group(id=f"g{i}", workers=choice.number(1, 2), demand=Demand(gpus=choice.number(0, 1))) for i in range(2)
        )
        option = Option(groups=groups, value=value)
    else:
        option = build.option(workers=choice.number(1, most), gpus=choice.pick((1, 1, 0)), value=value)
    return Job(id=name, options=(option,), labels=labels, relations=tuple(choice.some(known)))


def _with_running(choice: Choice, round_: Instance) -> Instance:
    """Let some jobs run already, wherever there is room; those of groups in part, or whole."""
    sizes = {machine.id: len(machine.gpus) for machine in round_.cluster.machines}
    free = {node.id: list(range(sizes[node.machine])) for node in round_.cluster.nodes}
    running = []
    for job in choice.some(round_.jobs):
        where: list[tuple[str, tuple[int, ...], str]] = []
        option = job.options[0]
        for leaf in option.leaves:
            for _ in range(choice.number(0, leaf.workers) if option.groups else leaf.workers):
                room = [node for node in free if len(free[node]) >= leaf.demand.gpus]
                if room:
                    node = choice.pick(room)
                    where.append((node, tuple(free[node].pop(0) for _ in range(leaf.demand.gpus)), leaf.id))
        if not where or (not option.groups and len(where) < option.workers):
            for node, gpus, _ in where:
                free[node] += gpus
            continue
        may = {} if option.groups else {"movable": choice.chance(0.5), "preemptible": choice.chance(0.5)}
        places = where if option.groups else [(node, gpus) for node, gpus, _ in where]
        running.append(build.running(job, places, **may))
    return round_.model_copy(update={"running": tuple(running)})
