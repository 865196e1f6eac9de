"""
Rounds of jobs whose workers belong together in groups.

Small ones for `helpers.tree_oracle`; larger ones, which no oracle solves.
"""

from __future__ import annotations

from placeopt import Instance, build
from placeopt.model import (
    Demand,
    Domain,
    Group,
    Job,
    LabelExpression,
    Node,
    NodeConditions,
    Option,
    Policy,
    Split,
    Spread,
    Taint,
    Toleration,
    Weights,
)
from strategies.choice import Choice

LEVELS = ("node", "rack", "zone")


def make_tree_round(choice: Choice, *, running: bool = False) -> Instance:
    """Return a round on up to four nodes in racks and zones, with up to three jobs, one of which is a tree."""
    zones = choice.number(1, 2)
    racks = choice.number(1, 3)
    domains = [Domain(id=f"z{i}", level="zone") for i in range(zones)]
    domains += [Domain(id=f"r{i}", level="rack", parent=f"z{i % zones}") for i in range(racks)]
    nodes = [_node(choice, f"n{i}", racks) for i in range(choice.number(2, 4))]
    sizes = [choice.number(1, 4), choice.number(1, 2)]
    machines = [build.machine(f"m{i}", gpus=size, cpu_millicores=4000) for i, size in enumerate(sizes)]
    jobs = [_job(choice, f"j{i}", tree=i == 0 or choice.chance(0.5)) for i in range(choice.number(1, 3))]
    weights = choice.pick((Weights(), Weights(communication=0, interference=0, fragmentation=0)))
    policy = Policy(weights=weights)
    round_ = build.instance(nodes, jobs, machines=machines, domains=domains, policy=policy)
    return _with_running(choice, round_) if running else round_


def _node(choice: Choice, name: str, racks: int) -> Node:
    domain = None if choice.chance(0.1) else f"r{choice.number(0, racks - 1)}"
    labels = {"pool": choice.pick(("a", "b"))}
    taints = (Taint(key="kept"),) if choice.chance(0.1) else ()
    fields = {"labels": labels, "drained": choice.chance(0.05), "taints": taints}
    return build.node(name, choice.pick(("m0", "m1")), domain=domain, **fields)


def _job(choice: Choice, name: str, *, tree: bool) -> Job:
    options = [_option(choice, "default", tree=tree)]
    if choice.chance(0.3):
        options.append(_option(choice, "other", tree=choice.chance(0.5)))
    selector = {"pool": "a"} if choice.chance(0.1) else {}
    return Job(id=name, options=tuple(options), conditions=NodeConditions(node_selector=selector))


def _option(choice: Choice, name: str, *, tree: bool) -> Option:
    made = _group(choice, name, depth=0, budget=[5], tree=tree)
    fields = {field: getattr(made, field) for field in Group.model_fields if field not in ("id", "optional")}
    missing = sum(leaf.workers * leaf.value_per_worker for leaf in made.leaves)
    if not made.groups and made.workers_min is None:
        fields["value_per_worker"] = missing = 0
    return Option(id=name, value=missing + choice.number(0, 5), **fields)


def _group(choice: Choice, name: str, *, depth: int, budget: list[int], tree: bool) -> Group:
    """Return a group of at most ``budget`` workers, which it takes away."""
    parts = []
    if tree and depth < 2 and budget[0] > 1 and (depth == 0 or choice.chance(0.4)):
        for i in range(choice.number(1, 3)):
            if budget[0]:
                part = _group(choice, f"{name}.{i}", depth=depth + 1, budget=budget, tree=tree)
                parts.append(part.model_copy(update={"optional": i > 0 and choice.chance(0.25)}))
    rules = {
        "single_node": choice.chance(0.1),
        "workers_per_node_max": choice.maybe(0.15, 1, 2),
        "prefer": tuple(choice.pick(((), (), ("rack",), ("node", "zone"), ("zone",)))),
        "conditions": _conditions(choice) if choice.chance(0.15) else NodeConditions(),
    }
    if parts:
        spread = _spread(choice)
        if any(_has_conditions(part) for part in parts):
            spread = tuple(one for one in spread if one.skew_max is None)
        return Group(id=name, groups=tuple(parts), splits=_splits(choice, 0), spread=spread, **rules)
    workers = choice.number(1, min(budget[0], 3))
    budget[0] -= workers
    least = choice.maybe(0.2, 1, workers)
    gpus = choice.number(0, 2)
    demand = Demand(gpus=gpus, cpu_millicores=choice.pick((0, 0, 1000, 2000)))
    return Group(
        id=name,
        workers=workers,
        workers_min=least,
        demand=demand,
        value_per_worker=choice.number(0, 2),
        splits=_splits(choice, workers if least in (None, workers) else 0),
        spread=_spread(choice),
        **rules,
    )


def _conditions(choice: Choice) -> NodeConditions:
    """Return what a group asks of nodes: a pool, in one of several forms, a node less, or a taint tolerated."""
    a, b = (LabelExpression(key="pool", operator="In", values=(pool,)) for pool in "ab")
    no_a = LabelExpression(key="pool", operator="NotIn", values=("a",))
    fields = [{"node_selector": {"pool": "a"}}, {"node_affinity": ((a,), (b,))}, {"node_affinity": ((no_a,), ())}]
    fields += [{"nodes_excluded": ("n0",)}, {"tolerations": (Toleration(key="kept", operator="Exists"),)}]
    return NodeConditions(**choice.pick(tuple(fields)))


def _has_conditions(group: Group) -> bool:
    return group.conditions != NodeConditions() or any(map(_has_conditions, group.groups))


def _splits(choice: Choice, workers: int) -> tuple[Split, ...]:
    """Return at most one split; ``workers`` that it may divide exactly, 0 for none."""
    if not choice.chance(0.25):
        return ()
    domains = choice.number(1, 2)
    exact = workers // domains if workers and workers % domains == 0 and choice.chance(0.5) else None
    return (Split(level=choice.pick(LEVELS), domains=domains, workers=exact),)


def _spread(choice: Choice) -> tuple[Spread, ...]:
    if not choice.chance(0.35):
        return ()
    kind, level = choice.pick(("segment", "smaller", "most", "skew")), choice.pick(LEVELS)
    number = choice.number(1, 3)
    if kind == "segment":
        made = [Spread(level=level, segment=number)]
        if choice.chance(0.2):
            made.append(Spread(level=choice.pick(LEVELS), segment=2))
        return tuple(made)
    if kind == "smaller":
        return (Spread(level=level, segment=number, remainder="smaller"),)
    if kind == "most":
        return (Spread(level=level, workers_max=number),)
    return (Spread(level=level, skew_max=number),)


def _with_running(choice: Choice, round_: Instance) -> Instance:
    """Let some of the first job's workers run already, wherever there is room."""
    job = round_.jobs[0]
    option = job.options[0]
    sizes = {machine.id: len(machine.gpus) for machine in round_.cluster.machines}
    free = {node.id: list(range(sizes[node.machine])) for node in round_.cluster.nodes}
    cpu = dict.fromkeys(free, 4000)
    where: list[tuple[str, tuple[int, ...], str]] = []
    for leaf in option.leaves:
        wanted = choice.number(0, leaf.workers) if option.groups else leaf.workers
        for _ in range(wanted):
            fits = [n for n in free if len(free[n]) >= leaf.demand.gpus and cpu[n] >= leaf.demand.cpu_millicores]
            if not fits:
                continue
            node = choice.pick(tuple(fits))
            cpu[node] -= leaf.demand.cpu_millicores
            gpus = tuple(free[node].pop(0) for _ in range(leaf.demand.gpus))
            where.append((node, gpus, leaf.id))
    if not where or (not option.groups and len(where) < option.fewest):
        return round_
    held = build.running(job, where if option.groups else [(node, gpus) for node, gpus, _ in where])
    return round_.model_copy(update={"running": (held,)})


def make_large_tree_round(choice: Choice) -> Instance:
    """Return a round on 20 to 60 nodes in racks and zones, with 5 to 20 jobs of a few hundred workers together."""
    zones, racks = choice.number(1, 3), choice.number(4, 10)
    domains = [Domain(id=f"z{i}", level="zone") for i in range(zones)]
    domains += [Domain(id=f"r{i}", level="rack", parent=f"z{i % zones}") for i in range(racks)]
    machines = [build.machine(f"m{i}", gpus=4 * (i + 1), cpu_millicores=64_000) for i in range(2)]
    nodes = [_large_node(choice, f"n{i}", f"r{i % racks}") for i in range(choice.number(20, 60))]
    jobs = [_large_job(choice, f"j{i}") for i in range(choice.number(5, 20))]
    round_ = build.instance(nodes, jobs, machines=machines, domains=domains)
    return _with_running(choice, round_) if choice.chance(0.3) else round_


def _large_node(choice: Choice, name: str, rack: str) -> Node:
    labels = {"pool": choice.pick(("a", "b"))}
    return build.node(name, choice.pick(("m0", "m1")), domain=rack, labels=labels, drained=choice.chance(0.05))


def _large_job(choice: Choice, name: str) -> Job:
    """Return a job of a leader and one to three groups of workers, or of one group alone."""
    selector = {"pool": "a"} if choice.chance(0.2) else {}
    fields = {"value": choice.number(10_000, 20_000), "prefer": choice.pick(((), ("rack",), ("rack", "zone")))}
    if choice.chance(0.3):
        leaf = _large_leaf(choice, name)
        own = {field: getattr(leaf, field) for field in ("workers", "demand", "spread")}
        return build.job(name, node_selector=selector, **own, **fields)
    lead = Group(id="lead", demand=Demand(gpus=choice.number(0, 1), cpu_millicores=4000))
    more = [_large_leaf(choice, f"work{i}") for i in range(choice.number(1, 3))]
    more[1:] = [leaf.model_copy(update={"optional": choice.chance(0.3), "value_per_worker": 50}) for leaf in more[1:]]
    splits = (Split(level="zone", domains=1),) if choice.chance(0.3) else ()
    return build.job(name, node_selector=selector, groups=(lead, *more), splits=splits, **fields)


def _large_leaf(choice: Choice, name: str) -> Group:
    """Return workers in segments of a rack, of a node or of both, or spread evenly."""
    size, number = choice.pick((1, 2, 4)), choice.number(1, 5)
    kinds: tuple[tuple[Spread, ...], ...] = (
        (),
        (Spread(level="node", segment=size),),
        (Spread(level="rack", segment=2 * size),),
        (Spread(level="rack", segment=2 * size), Spread(level="node", segment=size)),
        (Spread(level="rack", workers_max=4 * size),),
        (Spread(level="rack", segment=3 * size, remainder="smaller"),),
    )
    demand = Demand(gpus=choice.pick((1, 1, 2)), cpu_millicores=1000)
    prefer = choice.pick(((), (), ("rack",)))
    return Group(id=name, workers=2 * size * number, demand=demand, spread=choice.pick(kinds), prefer=prefer)
