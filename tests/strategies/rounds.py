"""Rounds: a cluster, a policy, jobs, and what runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis.strategies import SearchStrategy

from helpers.brute_force import combinations_up_to, placements
from placeopt import build
from placeopt.model import (
    Changes,
    Cluster,
    Domain,
    Fragmentation,
    Instance,
    Interference,
    Job,
    Machine,
    Node,
    Policy,
    Postpone,
    Queue,
    Quota,
    Running,
    Slowdown,
)
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.terms.rules import fits
from strategies.choice import Choice
from strategies.clusters import make_cluster
from strategies.conditions import TAINTS
from strategies.jobs import ODDS, PROFILES, Style, make_job, make_splits
from strategies.policies import make_cost_weights, make_policy, policies

MOST_COMBINATIONS = 20_000
MOST_PLACEMENTS = 80
"""Of one job."""


def make_round(
    choice: Choice,
    *,
    policy: SearchStrategy[Policy] | None = None,
    changes: bool | None = None,
    minima: bool | None = None,
    resources: bool = False,
    standing: bool = True,
    running: bool | None = None,
    simple: bool = False,
    **switches: bool,
) -> Instance:
    """
    Rounds of at most 6 jobs on 3 nodes of 4 GPUs, whose running jobs stand lawfully.

    Parameters
    ----------
    policy
        Policies to draw from; None: `policies`.
    changes
        True: many jobs run, most are elastic, and the policy always lets some of what runs be changed; False: never.
    minima
        Whether some jobs wait for the sake of their utility; None: in some rounds.
    resources
        Whether machines and jobs have named resources.
    standing
        Whether what runs may hold more of the named resources than there is by now.
    running
        Whether jobs run; None: in some rounds.
    simple
        What fillings count in full.
    **switches
        Kinds of demands (`ODDS`) that the jobs have for certain, or not at all.
    """
    cluster = make_cluster(choice, resources=resources)
    rules = make_policy(choice) if policy is None else choice.of(policy)
    drawn = {name: choice.chance(p) for name, p in ODDS.items()}
    style = Style(
        levels=["node", *dict.fromkeys(domain.level for domain in cluster.domains)],
        queues=[queue.id for queue in rules.queues],
        nodes=[node.id for node in cluster.nodes],
        switches={**drawn, "gangs": drawn["gangs"] or changes is True, "resources": resources, **switches},
        elastic=0.8 if changes else 0.4,
        simple=simple,
    )
    waiting = _small(choice, build.instance(cluster, policy=rules), style, choice.pick((1, 2, 3, 4, 4, 5, 5, 6, 6, 6)))
    slowdowns = make_slowdowns(choice, PROFILES, flat=simple) if choice.chance(0.7) else ()
    bare = build.instance(cluster, waiting, policy=rules)
    held: tuple[Running, ...] = ()
    if choice.chance(0.45) if running is None and not changes else running is not False:
        held = make_running(choice, bare, 0.7 if changes else 0.35)
    cluster = _with_barriers(choice, cluster)
    if resources and standing and held and choice.chance(0.5):
        cluster = _with_fewer_resources(choice, cluster)
    if changes or (changes is None and choice.chance(0.67)):
        rules, held = with_changes(choice, rules, held)
    if minima or (minima is None and choice.chance(0.25)):
        postpone = Postpone(rule="utility", utility=choice.pick(("sum", "sc17")))
        rules = rules.model_copy(update={"postpone": postpone})
        waiting = [_with_minimum(choice, job) for job in waiting]
    return build.instance(
        cluster, waiting, running=held, policy=rules, slowdowns=slowdowns, name="round", now_ms=1_000_000
    )


def with_changes(choice: Choice, rules: Policy, held: tuple[Running, ...]) -> tuple[Policy, tuple[Running, ...]]:
    """Return a policy, and running jobs, that allow some changes of these."""
    rules = rules.model_copy(update={"changes": _changes(choice)})
    odds = {"movable": 0.6, "shrinkable": 0.8, "preemptible": 0.6}
    may = [{name: choice.chance(p) for name, p in odds.items()} for _ in held]
    return rules, tuple(one.model_copy(update=update) for one, update in zip(held, may, strict=True))


def _small(choice: Choice, empty: Instance, style: Style, most: int) -> list[Job]:
    """Draw jobs; leave out most of those that fit nowhere, and those that would make the round too large."""
    kept: list[Job] = []
    room = MOST_COMBINATIONS
    for _ in range(3 * most):
        job = make_job(choice, f"j{len(kept)}", style)
        alone = compile_problem(empty.model_copy(update={"jobs": (job,)}))
        size = combinations_up_to(alone, MOST_PLACEMENTS)
        if size <= min(room, MOST_PLACEMENTS) and (size > 1 or choice.chance(0.1)):
            kept.append(job)
            room //= size
        if len(kept) == most:
            break
    return kept


def make_slowdowns(choice: Choice, profiles: Iterable[str], *, flat: bool = False) -> tuple[Slowdown, ...]:
    """Draw slowdowns of pairs of profiles; ``flat``: the same on a GPU, a switch and a socket."""
    made = []
    for profile, other in [(a, b) for a in profiles for b in profiles]:
        if choice.chance(0.6):
            socket, node = choice.number(0, 400, 100), choice.number(0, 200, 50)
            levels = (socket,) * 3 if flat else (choice.number(0, 900, 100), choice.number(0, 600, 100), socket)
            names = ("gpu_thousandths", "switch_thousandths", "socket_thousandths", "node_thousandths")
            amounts = dict(zip(names, (*levels, choice.pick((0, socket)) if flat else node), strict=True))
            made.append(Slowdown(profile=profile, beside=other, **amounts))
    return tuple(made)


def make_running(choice: Choice, bare: Instance, p: float) -> tuple[Running, ...]:
    """Let some jobs run, each somewhere it fits, now and then with more than the share that it asked for."""
    problem = compile_problem(bare)
    state = State(problem)
    held: Counter[tuple[str, int]] = Counter()
    placed = []
    for j, job in enumerate(bare.jobs):
        open_to = [place for place in placements(problem, j) if fits(state, j, place)] if choice.chance(p) else []
        if not open_to:
            continue
        if choice.chance(0.5):  # so that there is something to shrink
            open_to = [place for place in open_to if len(place.nodes) == max(len(one.nodes) for one in open_to)]
        place = choice.pick(open_to)
        state.apply(Move(j, place))
        name, where = problem.options.name[place.option], where_of(problem, place)
        demand = next(option.demand for option in job.options if option.id == name)
        gpus = [(node, gpu) for node, here in where for gpu in here]
        held.update(dict.fromkeys(gpus, demand.gpu_milli))
        placed.append((job, name, where, demand, gpus))
    made = []
    for job, name, where, demand, gpus in placed:
        free = max(0, 1000 - max((held[gpu] for gpu in gpus), default=1000))
        extra = choice.number(0, min((demand.gpu_milli_limit or demand.gpu_milli) - demand.gpu_milli, free))
        held.update(dict.fromkeys(gpus, extra))
        made.append(build.running(job, where, option=name, milli=demand.gpu_milli + extra))
    return tuple(made)


def where_of(problem: Problem, place: Placement) -> list[tuple[str, list[int]]]:
    """Return a placement in indices as `placeopt.build` takes it: node and GPU indices of each worker."""
    per_worker = int(problem.options.gpus[place.option])
    index = problem.topology.gpu_index
    return [
        (problem.node_ids[node], [int(index[g]) for g in place.gpus[rank * per_worker : (rank + 1) * per_worker]])
        for rank, node in enumerate(place.nodes)
    ]


def _with_barriers(choice: Choice, cluster: Cluster) -> Cluster:
    """Drain and taint nodes; what runs there stays."""

    def barred(node: Node, p: float) -> Node:
        taints = tuple(choice.some(TAINTS)) if choice.chance(0.15) else ()
        return node.model_copy(update={"drained": choice.chance(p), "taints": taints})

    nodes = tuple(barred(node, 0.1 if n else 0.03) for n, node in enumerate(cluster.nodes))
    return cluster.model_copy(update={"nodes": nodes})


def _with_fewer_resources(choice: Choice, cluster: Cluster) -> Cluster:
    """Withdraw some of the named resources, perhaps below what running jobs hold."""
    machines = tuple(
        Machine.model_validate(
            {**dict(one), "resources": {name: choice.number(0, amount) for name, amount in one.resources.items()}}
        )
        for one in cluster.machines
    )
    return cluster.model_copy(update={"machines": machines})


def _changes(choice: Choice) -> Changes:
    """Draw how many running jobs may be changed, and at what price."""
    most, prices = (0, 1, 1, 2, 5), (0, 0, 1, 2, 4)
    return Changes(
        moves_max=choice.pick(most),
        preemptions_max=choice.pick(most),
        shrinks_max=choice.pick(most),
        move_price=choice.pick(prices),
        preemption_price=choice.pick(prices),
        shrink_price_per_worker=choice.pick(prices),
        last_submitted_first=choice.chance(0.3),
    )


def _with_minimum(choice: Choice, job: Job) -> Job:
    """Draw a minimal utility; a job whose options state a utility of their own keeps what it has."""
    if any(option.utility_thousandths is not None for option in job.options):
        return job
    least = choice.pick((None, 100, 253, 300, 500, 683, 800, 1000))
    return job.model_copy(update={"utility_min_thousandths": least})


def make_filling_round(choice: Choice) -> Instance:
    """Rounds of which fillings count most costs in full."""
    costs = make_cost_weights(choice, ("fragmentation", "communication", "interference", "resource"), some=True)
    fragmentation = Fragmentation(level_weights={level: choice.number(0, 3) for level in ("node", "rack")})
    rules = policies(
        share_mode=choice.pick(("fraction", "fraction", "exclusive")),
        jobs_per_gpu_max=None,
        weights=costs,
        interference=Interference(model="pairwise"),
        fragmentation=fragmentation,
    )
    return make_round(
        choice, policy=rules, changes=False, minima=False, simple=True, edges=False, network=False, utility=False
    )


def make_gang_round(choice: Choice) -> Instance:
    """Draw up to 5 nodes of 1 or 2 GPUs under zones and racks with narrow links, some jobs, and a gang ``j``."""
    zones = [f"z{i}" for i in range(choice.number(0, 2))]
    domains = [Domain(id=zone, level="zone", uplink_mbps=choice.maybe(0.5, 200, 800, 100)) for zone in zones]
    domains += [
        Domain(id=f"r{i}", parent=choice.pick([None, *zones]), uplink_mbps=choice.maybe(0.5, 200, 800, 100))
        for i in range(choice.number(1, 3))
    ]
    boxes = [
        build.machine(
            f"m{gpus}",
            gpus,
            cpu_millicores=choice.number(2000, 6000, 1000),
            memory_mib=choice.number(4000, 8000, 1000),
            network_bandwidth_mbps=choice.maybe(0.5, 200, 800, 100),
        )
        for gpus in (1, 2)
    ]
    at = [None, *(domain.id for domain in domains)]
    nodes = [build.node(f"n{i}", choice.pick(boxes).id, domain=choice.pick(at)) for i in range(choice.number(2, 5))]
    queued = choice.chance(0.3)
    queues = (Queue(id="q", quota=Quota(gpu_milli=choice.number(1000, 5000, 1000))),) if queued else ()
    changes = Changes(preemption_price=choice.number(0, 3), last_submitted_first=False)
    policy = Policy(share_mode=choice.pick(("fraction", "fraction", "exclusive")), queues=queues, changes=changes)

    def asked(name: str, workers: int, gpus: int, **fields: Any) -> Job:
        return build.job(
            name,
            queue="q" if queued and choice.chance(0.5) else None,
            workers=workers,
            gpus=gpus,
            gpu_milli=choice.pick((1000, 300, 600)) if gpus == 1 else 1000,
            gpu_memory_mib=choice.pick((0, 0, 6000, 12_000)) if gpus else 0,
            cpu_millicores=choice.number(0, 2000, 500),
            memory_mib=choice.number(0, 2000, 500),
            network_bandwidth_mbps=choice.pick((0, 0, 100, 200)),
            **fields,
        )

    others = [
        asked(f"held{i}", choice.pick((1, 1, 2)), choice.pick((0, 1, 1)), value=choice.number(0, 6))
        for i in range(choice.number(1, 5))
    ]
    held = make_running(choice, build.instance(nodes, others, machines=boxes, domains=domains, policy=policy), 1.0)
    runs = {one.job for one in held}
    workers = choice.number(2, 4)
    fewest = choice.maybe(0.3, 1, workers)
    levels = sorted({"node", *(domain.level for domain in domains)})
    gang = asked(
        "j",
        workers,
        choice.pick((0, 1, 1, 1, 2)),
        value=5,
        workers_min=fewest,
        single_node=choice.chance(0.15),
        workers_per_node_max=choice.maybe(0.3, 1, 2),
        splits=make_splits(choice, levels, workers, fixed=fewest in (None, workers)),
    )
    return build.instance(
        nodes,
        [*(job for job in others if job.id in runs), gang],
        machines=boxes,
        domains=domains,
        policy=policy,
        running=[one.model_copy(update={"preemptible": choice.chance(0.8)}) for one in held],
    )
