"""
Campaign: valid random plans, each broken in one way. The referee must refuse every one, by the rule that was broken.

That a plan is broken follows from how it was broken, never from asking the referee: capacities are set to one below
what `random_rounds.Loads` counts, entries are taken out, added or turned against what the job states. A way that does
not apply to a plan is skipped. Where a limit is set to one below the load, the same plan with the limit at the load
must still be valid, so the rule is seen from both sides. Run as a script it prints a table.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaigns.random_rounds import Loads, above, count_loads, option_of, random_round
from helpers.granted_shares import with_due
from placeopt import check
from placeopt.build import placement
from placeopt.check import violations
from placeopt.model import (
    Amounts,
    Assignment,
    Instance,
    Machine,
    Moved,
    Placement,
    Plan,
    Policy,
    Preempted,
    Queue,
    Quota,
    Running,
    Shrunk,
    Split,
    Unplaced,
)


class Broken(NamedTuple):
    """A broken plan, its instance, the rule it breaks, and whether it breaks no other."""

    instance: Instance
    plan: Plan
    rule: str
    alone: bool = True
    valid: tuple[Instance, Plan] | None = None
    """The same at the limit, which must be valid."""


class Scene:
    """A random round with its valid plan, and the edits that ways of breaking it are made of."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.round, self.plan = random_round(self.rng)
        self.jobs = {j.id: j for j in self.round.jobs}
        self.runs = {run.job: run for run in self.round.running}
        self.touched = {e.job for e in (*self.plan.moved, *self.plan.shrunk, *self.plan.preempted)}
        self.loads: Loads = count_loads(self.round, self.plan.placements)

    def pick(self, candidates: Iterable[Any]) -> Any:
        """Choose one at random, None of none."""
        every = list(candidates)
        return self.rng.choice(every) if every else None

    def placements(
        self, which: Callable[[Placement], bool] = lambda _: True, *, waiting: bool = True
    ) -> list[Placement]:
        """List the placements, by default of jobs that did not run before, since those may be changed freely."""
        return [p for p in self.plan.placements if (not waiting or p.job not in self.runs) and which(p)]

    def with_placement(self, held: Placement, by: Placement | None) -> Plan:
        """Replace a placement, or drop it."""
        kept = [by if p is held else p for p in self.plan.placements]
        return self.plan.model_copy(update={"placements": tuple(p for p in kept if p is not None)})

    def with_assignment(self, held: Placement, index: int, **fields: Any) -> Plan:
        """Change fields of one assignment."""
        assignments = list(held.assignments)
        assignments[index] = assignments[index].model_copy(update=fields)
        return self.with_placement(held, held.model_copy(update={"assignments": tuple(assignments)}))

    def with_job(self, name: str, **fields: Any) -> tuple[Instance, Plan]:
        """Change fields of a job of the instance; the plan refers to the changed instance."""
        jobs = tuple(j.model_copy(update=fields) if j.id == name else j for j in self.round.jobs)
        return self.referring(self.round.model_copy(update={"jobs": jobs}))

    def with_option(self, held: Placement, **fields: Any) -> tuple[Instance, Plan]:
        """Change fields of the option that a placement takes."""
        options = tuple(o.model_copy(update=fields) if o.id == held.option else o for o in self.jobs[held.job].options)
        return self.with_job(held.job, options=options)

    def with_node(self, name: str, **fields: Any) -> tuple[Instance, Plan]:
        """Change fields of a node."""
        nodes = tuple(n.model_copy(update=fields) if n.id == name else n for n in self.round.cluster.nodes)
        return self.referring(self.with_cluster(nodes=nodes))

    def with_machine(self, name: str, **fields: Any) -> tuple[Instance, Plan]:
        """Give one node a machine type of its own, changed in some fields."""
        own = self.machine(name).model_copy(update={"id": "own", **fields})
        nodes = tuple(n.model_copy(update={"machine": "own"}) if n.id == name else n for n in self.round.cluster.nodes)
        return self.referring(self.with_cluster(nodes=nodes, machines=(*self.round.cluster.machines, own)))

    def with_cluster(self, **fields: Any) -> Instance:
        """Change fields of the cluster."""
        return self.round.model_copy(update={"cluster": self.round.cluster.model_copy(update=fields)})

    def with_policy(self, **fields: Any) -> Plan:
        """Judge by a policy that differs in some fields."""
        policy: Policy = self.plan.policy.values.model_copy(update=fields)
        ref = self.plan.policy.model_copy(update={"values": policy, "digest": policy.digest, "name": policy.name})
        return self.plan.model_copy(update={"policy": ref})

    def with_changes(self, **fields: Any) -> Plan:
        """Judge by a policy with other limits of changes."""
        return self.with_policy(changes=self.plan.policy.values.changes.model_copy(update=fields))

    def with_run(self, name: str, **fields: Any) -> tuple[Instance, Plan]:
        """Change fields of a running job."""
        runs = tuple(run.model_copy(update=fields) if run.job == name else run for run in self.round.running)
        return self.referring(self.round.model_copy(update={"running": runs}))

    def referring(self, round_: Instance, plan: Plan | None = None) -> tuple[Instance, Plan]:
        """Let the plan refer to a changed instance."""
        plan = self.plan if plan is None else plan
        ref = plan.instance.model_copy(update={"digest": round_.digest})
        return round_, plan.model_copy(update={"instance": ref})

    def machine(self, name: str) -> Machine:
        """Return the machine of a node."""
        kind = next(n.machine for n in self.round.cluster.nodes if n.id == name)
        return next(m for m in self.round.cluster.machines if m.id == kind)

    def listing(self, **lists: Iterable[Any]) -> Plan:
        """Replace lists of the plan."""
        return self.plan.model_copy(update={name: tuple(entries) for name, entries in lists.items()})

    def overfills(self, held: Placement, a: Assignment, gpu: int) -> bool:
        """Tell whether the request of a job is more than what is left of a GPU."""
        return self.loads.gpu_milli[a.node, gpu] + option_of(self.round, held).demand.gpu_milli > 1000

    def with_list_raised(self, name: str, entry: Any) -> Plan:
        """Add an entry to a list of changes, and allow as many."""
        plan = self.with_changes(moves_max=9, shrinks_max=9, preemptions_max=9)
        return plan.model_copy(update={name: (*getattr(plan, name), entry)})


Way = Callable[[Scene], Broken | None]
WAYS: dict[str, Way] = {}


def way(name: str) -> Callable[[Way], Way]:
    """Register a way to break a plan."""

    def register(function: Way) -> Way:
        WAYS[name] = function
        return function

    return register


# ---- the account of jobs, and what the plan refers to


@way("job missing from unplaced")
def _(s: Scene) -> Broken | None:
    gone = s.pick(u for u in s.plan.unplaced if u.job not in s.touched)
    return gone and Broken(s.round, s.listing(unplaced=[u for u in s.plan.unplaced if u is not gone]), "account")


@way("job missing from placements")
def _(s: Scene) -> Broken | None:
    gone = s.pick(s.placements())
    return gone and Broken(s.round, s.with_placement(gone, None), "account")


@way("job placed twice")
def _(s: Scene) -> Broken | None:
    twice = s.pick(s.placements())
    return twice and Broken(s.round, s.listing(placements=[*s.plan.placements, twice]), "account", alone=False)


@way("job placed and unplaced")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    entry = held and Unplaced(job=held.job, reason="postponed", detail="later")
    return held and Broken(s.round, s.listing(unplaced=[*s.plan.unplaced, entry]), "account")


@way("unknown job unplaced")
def _(s: Scene) -> Broken | None:
    entry = Unplaced(job="stranger", reason="conflict", detail="no room")
    return Broken(s.round, s.listing(unplaced=[*s.plan.unplaced, entry]), "account")


@way("unknown job placed")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    stranger = held and held.model_copy(update={"job": "stranger"})
    return held and Broken(s.round, s.listing(placements=[*s.plan.placements, stranger]), "account")


@way("plan of another content")
def _(s: Scene) -> Broken | None:
    other = s.round.model_copy(update={"now_ms": s.round.now_ms + 1})
    return Broken(other, s.plan, "reference")


@way("plan of another revision")
def _(s: Scene) -> Broken | None:
    ref = s.plan.instance.model_copy(update={"revision": s.round.revision + 1})
    return Broken(s.round, s.plan.model_copy(update={"instance": ref}), "reference")


@way("policy changed under its digest")
def _(s: Scene) -> Broken | None:
    loose = s.plan.policy.values.model_copy(update={"queues": ()})
    ref = s.plan.policy.model_copy(update={"values": loose})
    return Broken(s.round, s.plan.model_copy(update={"policy": ref}), "reference")


# ---- the form of one placement


@way("option that does not exist")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    return held and Broken(s.round, s.with_placement(held, held.model_copy(update={"option": "none"})), "option")


@way("option of too little utility")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: option_of(s.round, p).utility_thousandths is not None))
    if held is None:
        return None
    utility = option_of(s.round, held).utility_thousandths or 0
    return Broken(
        *s.with_job(held.job, utility_min_thousandths=utility + 1),
        "option",
        valid=s.with_job(held.job, utility_min_thousandths=utility),
    )


@way("gang member dropped")
def _(s: Scene) -> Broken | None:
    held = s.pick(
        s.placements(lambda p: option_of(s.round, p).workers_min is None and option_of(s.round, p).workers > 1)
    )
    return held and Broken(s.round, s.with_placement(held, resized(s, held, -1)), "workers", alone=False)


@way("one worker too many")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: option_of(s.round, p).workers == workers_of(p) and not gpus_of(p)))
    return held and Broken(s.round, s.with_placement(held, resized(s, held, +1)), "workers", alone=False)


@way("elastic job below its minimum")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: option_of(s.round, p).workers_min is not None))
    if held is None:
        return None
    fewer = resized(s, held, option_of(s.round, held).workers_min - 1 - workers_of(held))
    return Broken(s.round, s.with_placement(held, fewer), "workers")


@way("rank twice")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: workers_of(p) > 1))
    if held is None:
        return None
    ranks = [w.rank for a in held.assignments for w in a.workers]
    one, two = s.rng.sample(ranks, 2)
    return Broken(s.round, s.with_placement(held, reranked(held, one, two)), "workers")


@way("rank beyond the last")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    return held and Broken(s.round, s.with_placement(held, reranked(held, 0, workers_of(held))), "workers")


@way("node that does not exist")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: not option_of(s.round, p).splits))
    return held and Broken(s.round, s.with_assignment(held, 0, node="nowhere"), "unknown_node", alone=False)


@way("GPU that the node does not have")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: bool(gpus_of(p))))
    if held is None:
        return None
    a = held.assignments[0]
    old, new = a.workers[0].gpus[0], len(s.machine(a.node).gpus)
    return Broken(s.round, s.with_assignment(held, 0, **regpu(a, old, new)), "gpu_indexes")


@way("worker with a GPU too few")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: bool(gpus_of(p))))
    if held is None:
        return None
    a = held.assignments[0]
    first = a.workers[0].model_copy(update={"gpus": a.workers[0].gpus[1:]})
    gpus = {gpu: milli for gpu, milli in a.gpus.items() if int(gpu) != a.workers[0].gpus[0]}
    return Broken(s.round, s.with_assignment(held, 0, workers=(first, *a.workers[1:]), gpus=gpus), "gpu_indexes")


@way("GPU of two workers")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: bool(gpus_of(p)) and len(p.assignments[0].workers) > 1))
    if held is None:
        return None
    a = held.assignments[0]
    second = a.workers[1].model_copy(update={"gpus": a.workers[0].gpus})
    gpus = {gpu: milli for gpu, milli in a.gpus.items() if int(gpu) not in a.workers[1].gpus}
    fields = {"workers": (a.workers[0], second, *a.workers[2:]), "gpus": gpus}
    return Broken(s.round, s.with_assignment(held, 0, **fields), "gpu_indexes")


@way("share of a GPU without a worker")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: free_gpu(s, p) is not None))
    if held is None:
        return None
    a, demand = held.assignments[0], option_of(s.round, held).demand
    gpus = {**a.gpus, str(free_gpu(s, held)): demand.gpu_milli}
    return Broken(s.round, s.with_assignment(held, 0, gpus=gpus), "gpu_indexes", alone=False)


@way("share above the limit")
def _(s: Scene) -> Broken | None:
    return share_of(s, lambda d: (d.gpu_milli_limit or d.gpu_milli) + 1)


@way("share below the request")
def _(s: Scene) -> Broken | None:
    return share_of(s, lambda d: d.gpu_milli - 1)


@way("one millicore too few stated")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    return held and Broken(
        s.round, s.with_assignment(held, 0, cpu_millicores=held.assignments[0].cpu_millicores - 1), "amounts"
    )


@way("one MiB too many stated")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    return held and Broken(
        s.round, s.with_assignment(held, 0, memory_mib=held.assignments[0].memory_mib + 1), "amounts", alone=False
    )


# ---- where a job may stand


@way("node tainted")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    return held and Broken(*s.with_node(held.assignments[0].node, taints=("new",)), "taints")


@way("node drained")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    return held and Broken(*s.with_node(held.assignments[0].node, drained=True), "drained")


@way("running jobs stay on a drained node")
def _(s: Scene) -> Broken | None:
    # Only a job that moved onto the node breaks the rule, not those that stayed there.
    held = s.pick(s.placements(lambda p: p.job in {m.job for m in s.plan.moved}, waiting=False))
    return held and Broken(*s.with_node(held.assignments[0].node, drained=True, taints=()), "drained")


@way("label that the job selects by")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    return held and Broken(*s.with_job(held.job, node_selector={"disk": "tape"}), "node_selector")


@way("another rack selected")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: len(p.assignments) > 1))
    if held is None:
        return None
    racks = {dict(above(s.round, a.node)).get("rack") for a in held.assignments}
    wrong = s.pick({"r0", "r1", "r2"} if len(racks) > 1 else {"r0", "r1", "r2"} - racks)
    return Broken(*s.with_job(held.job, node_selector={"rack": wrong}), "node_selector")


@way("node not among those allowed")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    if held is None:
        return None
    used = {a.node for a in held.assignments}
    others = [n.id for n in s.round.cluster.nodes if n.id != held.assignments[0].node]
    return Broken(
        *s.with_job(held.job, nodes_allowed=tuple(others)),
        "nodes_allowed",
        valid=s.with_job(held.job, nodes_allowed=tuple(used)),
    )


@way("GPU model not allowed")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: bool(gpus_of(p))))
    if held is None:
        return None
    demand = option_of(s.round, held).demand
    models = {s.machine(name).gpus[gpu].model for name, gpu in gpus_of(held)}
    return Broken(
        *s.with_option(held, demand=demand.model_copy(update={"gpu_models": ("A100",)})),
        "gpu_model",
        valid=s.with_option(held, demand=demand.model_copy(update={"gpu_models": tuple(models)})),
    )


# ---- what a GPU, a node, a link, a queue holds


@way("GPU moved onto a busy one")
def _(s: Scene) -> Broken | None:
    moves = [
        (held, held.assignments[0].workers[0].gpus[0], gpu)
        for held in s.placements(lambda p: bool(gpus_of(p)))
        for gpu in range(len(s.machine(held.assignments[0].node).gpus))
        if (held.assignments[0].node, gpu) not in gpus_of(held) and s.overfills(held, held.assignments[0], gpu)
    ]
    chosen = s.pick(moves)
    if chosen is None:
        return None
    held, old, new = chosen
    return Broken(s.round, s.with_assignment(held, 0, **regpu(held.assignments[0], old, new)), "gpu_share", alone=False)


@way("GPU overfilled by one milli")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: any(s.loads.gpu_jobs[place] > 1 for place in gpus_of(p))))
    if held is None:
        return None
    demand = option_of(s.round, held).demand
    at_most = demand.gpu_milli + 1000 - max(s.loads.gpu_milli[place] for place in gpus_of(held))

    def asking(milli: int) -> tuple[Instance, Plan]:
        lifted, _ = s.with_option(held, demand=demand.model_copy(update={"gpu_milli": milli, "gpu_milli_limit": None}))
        lifted = lifted.model_copy(update={"policy": no_quota(s.round.policy)})
        policy = no_quota(s.plan.policy.values)
        ref = s.plan.policy.model_copy(update={"values": policy, "digest": policy.digest})
        return s.referring(lifted, s.plan.model_copy(update={"policy": ref}))

    return Broken(*asking(at_most + 1), "gpu_share", valid=asking(at_most))


@way("shared GPU in exclusive mode")
def _(s: Scene) -> Broken | None:
    if max(s.loads.gpu_jobs.values(), default=0) < 2:
        return None
    # not alone: what already ran so, and was changed, had to stay
    return Broken(s.round, s.with_policy(share_mode="exclusive"), "gpu_exclusive", alone=False)


@way("one job too many on a GPU")
def _(s: Scene) -> Broken | None:
    most = max(s.loads.gpu_jobs.values(), default=0)
    if most < 2:
        return None
    at_limit = s.round, s.with_policy(jobs_per_gpu_max=most)
    return Broken(s.round, s.with_policy(jobs_per_gpu_max=most - 1), "gpu_jobs", alone=False, valid=at_limit)


@way("GPU memory short of one MiB")
def _(s: Scene) -> Broken | None:
    chosen = s.pick(key for key, memory in s.loads.gpu_memory.items() if memory)
    if chosen is None:
        return None
    name, gpu = chosen

    def with_memory(mib: int) -> tuple[Instance, Plan]:
        gpus = list(s.machine(name).gpus)
        gpus[gpu] = gpus[gpu].model_copy(update={"memory_mib": mib})
        return s.with_machine(name, gpus=tuple(gpus))

    load = s.loads.gpu_memory[name, gpu]
    return Broken(*with_memory(load - 1), "gpu_memory", valid=with_memory(load))


def node_short(field: str, rule: str, percent: int) -> Way:
    """Make a node's capacity one too small for its load: 100 load > percent x capacity, but not at capacity + 1."""

    def broken(s: Scene) -> Broken | None:
        name = s.pick(name for (name, resource), load in s.loads.node.items() if resource == field and load)
        if name is None:
            return None
        enough = -(-100 * s.loads.node[name, field] // percent)
        return Broken(*s.with_machine(name, **{field: enough - 1}), rule, valid=s.with_machine(name, **{field: enough}))

    return broken


WAYS["CPU short of one millicore"] = node_short("cpu_millicores", "cpu", 100)
WAYS["memory short of one MiB"] = node_short("memory_mib", "memory", 100)
WAYS["memory bandwidth short of one MB/s"] = node_short("memory_bandwidth_mbps", "memory_bandwidth", 75)
WAYS["PCIe bandwidth short of one MB/s"] = node_short("pcie_bandwidth_mbps", "pcie_bandwidth", 100)


@way("named resource short of one")
def _(s: Scene) -> Broken | None:
    held = s.pick(p for p in s.plan.placements if p.job not in s.runs)
    if held is None:
        return None
    demand = option_of(s.round, held).demand.model_copy(update={"resources": Amounts(licence=3)})
    round_, plan = s.with_option(held, demand=demand)
    a = max(held.assignments, key=lambda a: len(a.workers))
    load = 3 * len(a.workers)

    def of_machine(amount: int) -> tuple[Instance, Plan]:
        kinds = [m.model_copy(update={"resources": Amounts(licence=3 * 10**6)}) for m in round_.cluster.machines]
        own = s.machine(a.node).model_copy(update={"id": "own", "resources": Amounts(licence=amount)})
        nodes = tuple(n.model_copy(update={"machine": "own"}) if n.id == a.node else n for n in round_.cluster.nodes)
        cluster = round_.cluster.model_copy(update={"machines": (*kinds, own), "nodes": nodes})
        return s.referring(round_.model_copy(update={"cluster": cluster}), plan)

    return Broken(*of_machine(load - 1), "resource", valid=of_machine(load))


@way("domain uplink short of one MB/s")
def _(s: Scene) -> Broken | None:
    domains = {d.id for d in s.round.cluster.domains}
    place = s.pick(place for (place, _), load in s.loads.uplink.items() if load and place in domains)
    if place is None:
        return None
    enough = max(-(-100 * s.loads.uplink[place, True] // 75), -(-100 * s.loads.uplink[place, False] // 25))

    def with_uplink(mbps: int) -> tuple[Instance, Plan]:
        changed = (d.model_copy(update={"uplink_mbps": mbps}) if d.id == place else d for d in s.round.cluster.domains)
        return s.referring(s.with_cluster(domains=tuple(changed)))

    return Broken(*with_uplink(enough - 1), "uplink", valid=with_uplink(enough))


@way("machine uplink short of one MB/s")
def _(s: Scene) -> Broken | None:
    nodes = {n.id for n in s.round.cluster.nodes}
    name = s.pick(place for (place, _), load in s.loads.uplink.items() if load and place in nodes)
    if name is None:
        return None
    enough = max(-(-100 * s.loads.uplink[name, True] // 75), -(-100 * s.loads.uplink[name, False] // 25))
    return Broken(
        *s.with_machine(name, network_bandwidth_mbps=enough - 1),
        "uplink",
        valid=s.with_machine(name, network_bandwidth_mbps=enough),
    )


def quota_short(field: str) -> Way:
    """Make the quota of a queue, plus what it borrows, one less than it uses."""

    def broken(s: Scene) -> Broken | None:
        name = s.pick(queue for (queue, resource), load in s.loads.queue.items() if resource == field and load > 100)
        if name is None:
            return None

        def with_quota(amount: int) -> Plan:
            return s.with_policy(queues=(Queue(id=name, quota=Quota(**{field: amount}), borrow=Quota(**{field: 100})),))

        used = s.loads.queue[name, field]
        return Broken(s.round, with_quota(used - 101), "queue_quota", valid=(s.round, with_quota(used - 100)))

    return broken


WAYS["GPU quota passed by one"] = quota_short("gpu_milli")
WAYS["CPU quota passed by one"] = quota_short("cpu_millicores")
WAYS["memory quota passed by one"] = quota_short("memory_mib")


@way("dominant share passed")
def _(s: Scene) -> Broken | None:
    name = s.pick({queue for (queue, _), load in s.loads.queue.items() if load})
    if name is None:
        return None
    shares = []
    for field in ("gpu_milli", "cpu_millicores", "memory_mib"):
        machines = [s.machine(n.id) for n in s.round.cluster.nodes]
        total = sum(1000 * len(m.gpus) if field == "gpu_milli" else getattr(m, field) for m in machines)
        shares.append(-(-100 * s.loads.queue[name, field] // total))
    enough = max(shares)

    def with_percent(percent: int) -> Plan:
        return s.with_policy(
            queues=(Queue(id=name, dominant_share_percent=percent // 2, borrow_percent=percent - percent // 2),)
        )

    return Broken(s.round, with_percent(enough - 1), "queue_share", valid=(s.round, with_percent(enough)))


# ---- how workers lie


@way("spread although on a single node")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: len(p.assignments) > 1))
    return held and Broken(*s.with_option(held, single_node=True), "single_node")


@way("one worker too many on a node")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: max(len(a.workers) for a in p.assignments) > 1))
    if held is None:
        return None
    most = max(len(a.workers) for a in held.assignments)
    return Broken(
        *s.with_option(held, workers_per_node_max=most - 1),
        "workers_per_node",
        valid=s.with_option(held, workers_per_node_max=most),
    )


@way("split over another number of nodes")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    if held is None:
        return None
    count = len(held.assignments)
    return Broken(
        *s.with_option(held, splits=(Split(level="node", domains=count + 1),)),
        "split",
        valid=s.with_option(held, splits=(Split(level="node", domains=count),)),
    )


@way("split with uneven workers")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: len(p.assignments) == 2 and workers_of(p) in (3, 4)))
    if held is None or len({len(a.workers) for a in held.assignments}) == 1:
        return None
    split = Split(level="node", domains=2, workers=workers_of(held) // 2)
    return Broken(*s.with_option(held, splits=(split,)), "split")


@way("split with a node outside any rack")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements(lambda p: bool(option_of(s.round, p).splits)))
    return held and Broken(*s.with_node(held.assignments[0].node, domain=None), "split", alone=False)


# ---- running jobs


@way("running job moved in silence")
def _(s: Scene) -> Broken | None:
    move = s.pick(s.plan.moved)
    return move and Broken(s.round, s.listing(moved=[m for m in s.plan.moved if m is not move]), "running")


@way("running job shrunk in silence")
def _(s: Scene) -> Broken | None:
    shrink = s.pick(s.plan.shrunk)
    return shrink and Broken(s.round, s.listing(shrunk=[e for e in s.plan.shrunk if e is not shrink]), "running")


@way("running job stopped in silence")
def _(s: Scene) -> Broken | None:
    stop = s.pick(s.plan.preempted)
    return stop and Broken(s.round, s.listing(preempted=[e for e in s.plan.preempted if e is not stop]), "running")


def granted_other(s: Scene, by: int, *, runs: bool) -> Broken | None:
    """Grant a job so many thousandths more of a GPU than the rule gives, within request and limit."""

    def lawful(p: Placement) -> bool:
        if (p.job in s.runs) != runs or not gpus_of(p):
            return False
        demand = option_of(s.round, p).demand
        first = next(iter(p.assignments[0].gpus.values()))
        return demand.gpu_milli <= first + by <= (demand.gpu_milli_limit or demand.gpu_milli)

    held = s.pick(s.placements(lawful, waiting=False))
    if held is None:
        return None
    a = held.assignments[0]
    gpu = next(iter(a.gpus))
    return Broken(s.round, s.with_assignment(held, 0, gpus={**a.gpus, gpu: a.gpus[gpu] + by}), "gpu_grant")


@way("granted one thousandth too little")
def _(s: Scene) -> Broken | None:
    return granted_other(s, -1, runs=False)


@way("granted one thousandth too much")
def _(s: Scene) -> Broken | None:
    return granted_other(s, 1, runs=False)


@way("running job granted one thousandth too little")
def _(s: Scene) -> Broken | None:
    return granted_other(s, -1, runs=True)


@way("ranks of a running job swapped")
def _(s: Scene) -> Broken | None:
    held = s.pick(
        s.placements(lambda p: p.job in s.runs and p.job not in s.touched and len(p.assignments) > 1, waiting=False)
    )
    if held is None:
        return None
    one, two = held.assignments[0].workers[0].rank, held.assignments[1].workers[0].rank
    swapped = reranked(reranked(reranked(held, one, -1), two, one), -1, two)
    # Not at home any more, the job may also stand where it could not start.
    return Broken(s.round, s.with_placement(held, swapped), "running", alone=False)


@way("moved, but not movable")
def _(s: Scene) -> Broken | None:
    move = s.pick(s.plan.moved)
    return move and Broken(*s.with_run(move.job, movable=False), "moved")


@way("shrunk, but not shrinkable")
def _(s: Scene) -> Broken | None:
    shrink = s.pick(s.plan.shrunk)
    return shrink and Broken(*s.with_run(shrink.job, shrinkable=False), "shrunk")


@way("preempted, but not preemptible")
def _(s: Scene) -> Broken | None:
    stop = s.pick(s.plan.preempted)
    return stop and Broken(*s.with_run(stop.job, preemptible=False), "preempted")


def limit_short(field: str, rule: str) -> Way:
    """Allow one change fewer than there are."""

    def broken(s: Scene) -> Broken | None:
        count = len(getattr(s.plan, rule))
        if not count:
            return None
        at_limit = s.round, s.with_changes(**{field: count})
        return Broken(s.round, s.with_changes(**{field: count - 1}), rule, valid=at_limit)

    return broken


WAYS["one move too many"] = limit_short("moves_max", "moved")
WAYS["one shrink too many"] = limit_short("shrinks_max", "shrunk")
WAYS["one preemption too many"] = limit_short("preemptions_max", "preempted")


@way("move from another node")
def _(s: Scene) -> Broken | None:
    move = s.pick(s.plan.moved)
    if move is None:
        return None
    wrong = {"job": move.job, "from": ("n99",), "to": move.to_nodes}
    return Broken(s.round, s.listing(moved=replaced(s.plan.moved, move, Moved.model_validate(wrong))), "moved")


@way("move to one node too many")
def _(s: Scene) -> Broken | None:
    move = s.pick(s.plan.moved)
    if move is None:
        return None
    wrong = {"job": move.job, "from": move.from_nodes, "to": (*move.to_nodes, move.to_nodes[0])}
    return Broken(s.round, s.listing(moved=replaced(s.plan.moved, move, Moved.model_validate(wrong))), "moved")


@way("number of kept workers wrong")
def _(s: Scene) -> Broken | None:
    entry = s.pick(s.plan.shrunk)
    wrong = entry and Shrunk(job=entry.job, workers=entry.workers + 1)
    return entry and Broken(s.round, s.listing(shrunk=replaced(s.plan.shrunk, entry, wrong)), "shrunk")


@way("share freed wrong")
def _(s: Scene) -> Broken | None:
    entry = s.pick(s.plan.preempted)
    wrong = entry and Preempted(job=entry.job, freed_gpu_milli=entry.freed_gpu_milli + 1)
    return entry and Broken(s.round, s.listing(preempted=replaced(s.plan.preempted, entry, wrong)), "preempted")


@way("chief taken")
def _(s: Scene) -> Broken | None:
    # The last former worker takes the chief's rank; the chief's place is given up.
    entry = s.pick(s.plan.shrunk)
    if entry is None:
        return None
    held = next(p for p in s.plan.placements if p.job == entry.job)
    run = s.runs[entry.job]
    former = sorted((w.rank, a.node, w.gpus) for a in run.assignments for w in a.workers)
    kept = former[1 : 1 + entry.workers]
    if len(kept) < entry.workers or kept[0][1:] == former[0][1:]:
        return None
    by = placement(s.jobs[entry.job], [(name, gpus) for _, name, gpus in kept], option=run.option)
    return Broken(s.round, s.with_placement(held, by), "shrunk", alone=False)


def untouched(s: Scene) -> Running | None:
    """Choose a running job that stays as it is."""
    chosen: Running | None = s.pick(run for name, run in s.runs.items() if name not in s.touched)
    return chosen


@way("listed as moved, but stays")
def _(s: Scene) -> Broken | None:
    run = untouched(s)
    nodes = run and tuple(a.node for a in run.assignments)
    lie = run and Moved.model_validate({"job": run.job, "from": nodes, "to": nodes})
    return run and Broken(s.round, s.with_list_raised("moved", lie), "moved")


@way("listed as shrunk, but stays")
def _(s: Scene) -> Broken | None:
    run = untouched(s)
    lie = run and Shrunk(job=run.job, workers=workers_of(run))
    return run and Broken(s.round, s.with_list_raised("shrunk", lie), "shrunk")


@way("listed as preempted, but runs")
def _(s: Scene) -> Broken | None:
    run = untouched(s)
    lie = run and Preempted(job=run.job, freed_gpu_milli=option_of(s.round, run).demand.gpu_milli * len(gpus_of(run)))
    return run and Broken(s.round, s.with_list_raised("preempted", lie), "preempted")


@way("waiting job listed as moved")
def _(s: Scene) -> Broken | None:
    held = s.pick(s.placements())
    nodes = held and tuple(a.node for a in held.assignments)
    lie = held and Moved.model_validate({"job": held.job, "from": nodes, "to": nodes})
    return held and Broken(s.round, s.with_list_raised("moved", lie), "moved")


@way("waiting job listed as preempted")
def _(s: Scene) -> Broken | None:
    waits = s.pick(u for u in s.plan.unplaced if u.job not in s.runs)
    return waits and Broken(
        s.round, s.with_list_raised("preempted", Preempted(job=waits.job, freed_gpu_milli=0)), "preempted"
    )


@way("change listed twice")
def _(s: Scene) -> Broken | None:
    entry = s.pick(s.plan.moved)
    return entry and Broken(s.round, s.with_list_raised("moved", entry), "moved")


@way("later job of the queue spared")
def _(s: Scene) -> Broken | None:
    stop = s.pick(s.plan.preempted)
    if stop is None:
        return None
    spared = s.pick(
        name
        for name, run in s.runs.items()
        if name not in s.touched and run.preemptible and s.jobs[name].queue == s.jobs[stop.job].queue
    )
    if spared is None:
        return None

    def with_arrivals(of_spared: int) -> tuple[Instance, Plan]:
        # All others arrived first of all; only these two compare.
        arrivals = {stop.job: 500, spared: of_spared, **{e.job: 500 for e in (*s.plan.preempted, *s.plan.shrunk)}}
        jobs = tuple(j.model_copy(update={"arrival_ms": arrivals.get(j.id, 0)}) for j in s.round.jobs)
        return s.referring(s.round.model_copy(update={"jobs": jobs}), s.with_changes(last_submitted_first=True))

    return Broken(*with_arrivals(501), "last_submitted_first", valid=with_arrivals(500))


# ---- helpers


def workers_of(held: Placement) -> int:
    """Count the workers of a placement."""
    return sum(len(a.workers) for a in held.assignments)


def gpus_of(held: Placement) -> list[tuple[str, int]]:
    """List the GPUs of a placement."""
    return [(a.node, int(gpu)) for a in held.assignments for gpu in a.gpus]


def free_gpu(s: Scene, held: Placement) -> int | None:
    """Return a GPU of the placement's first node that the job does not hold."""
    own = {gpu for _, gpu in gpus_of(held)}
    gpus = range(len(s.machine(held.assignments[0].node).gpus))
    return next((gpu for gpu in gpus if gpu not in own), None) if own else None


def resized(s: Scene, held: Placement, by: int) -> Placement:
    """Drop the last workers, or add workers without GPUs on the first node; amounts stay true."""
    where = sorted((w.rank, a.node, w.gpus) for a in held.assignments for w in a.workers)
    where = where[:by] if by < 0 else where + [(0, where[0][1], ())] * by
    return placement(s.jobs[held.job], [(name, gpus) for _, name, gpus in where], option=held.option)


def reranked(held: Placement, old: int, new: int) -> Placement:
    """Give the worker of rank ``old`` the rank ``new``."""
    assignments = tuple(
        a.model_copy(
            update={"workers": tuple(w.model_copy(update={"rank": new}) if w.rank == old else w for w in a.workers)}
        )
        for a in held.assignments
    )
    return held.model_copy(update={"assignments": assignments})


def regpu(a: Assignment, old: int, new: int) -> dict[str, Any]:
    """Let the workers of an assignment hold GPU ``new`` instead of ``old``."""
    return {
        "gpus": {str(new) if gpu == str(old) else gpu: milli for gpu, milli in a.gpus.items()},
        "workers": tuple(
            w.model_copy(update={"gpus": tuple(new if gpu == old else gpu for gpu in w.gpus)}) for w in a.workers
        ),
    }


def share_of(s: Scene, milli: Callable[[Any], int]) -> Broken | None:
    """Grant a GPU another share; 1 to 1000 is what a file can hold."""
    held = s.pick(s.placements(lambda p: bool(gpus_of(p)) and 1 <= milli(option_of(s.round, p).demand) <= 1000))
    if held is None:
        return None
    a = held.assignments[0]
    gpus = {**a.gpus, next(iter(a.gpus)): milli(option_of(s.round, held).demand)}
    return Broken(s.round, s.with_assignment(held, 0, gpus=gpus), "gpu_milli", alone=False)


def no_quota(policy: Policy) -> Policy:
    """Return the policy without queues."""
    copy: Policy = policy.model_copy(update={"queues": ()})
    return copy


def replaced(entries: Iterable[Any], old: Any, new: Any) -> list[Any]:
    """Replace one entry of a list."""
    return [new if entry is old else entry for entry in entries]


# ---- the campaign


def granted(instance: Instance, plan: Plan) -> Plan:
    """Return the plan with the shares that the rule gives: who stands on a GPU decides what all others there hold."""
    return plan.model_copy(update={"placements": with_due(instance, plan.placements, plan.policy.values)})


def judge(name: str, broken: Broken) -> str | None:
    """Return what is wrong with the referee's answer, None if nothing is."""
    about_shares = broken.rule in ("gpu_milli", "gpu_grant")
    plan = broken.plan if about_shares else granted(broken.instance, broken.plan)
    judged = check.judge(broken.instance, plan)  # where only running jobs are beyond a limit, that stands
    found = {violation.rule for violation in [*judged.violations, *judged.standing]}
    if broken.rule not in found:
        return f"{name}: expected {broken.rule}, found {sorted(found) or 'nothing'}"
    if broken.alone and found != {broken.rule}:
        return f"{name}: expected {broken.rule} alone, found {sorted(found)}"
    if broken.valid is not None:
        left = violations(broken.valid[0], granted(*broken.valid))
        if left:
            return f"{name}: at the limit, yet refused: {left[0]}"
    return None


def run(count: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Break ``count`` plans at least, each way about as often; return how often, and what went wrong."""
    done: Counter[str] = Counter()
    wrong: list[str] = []
    while sum(done.values()) < count or len(done) < len(WAYS):
        scene = Scene(seed)
        seed += 1
        if seed > 100 + count:
            wrong.append(f"never applied: {sorted(set(WAYS) - set(done))}")
            break
        base = violations(scene.round, scene.plan)
        if base:
            wrong.append(f"seed {seed - 1}: the valid plan is refused: {base[0]}")
            continue
        rarest = sorted(WAYS, key=lambda name: done[name])[: max(12, len(WAYS) // 3)]
        for name in rarest:
            broken = WAYS[name](scene)
            if broken is None:
                continue
            done[name] += 1
            fault = judge(name, broken)
            if fault is not None:
                wrong.append(f"seed {seed - 1}: {fault}")
    return done, wrong


def main() -> int:
    """Run the campaign; print a table per way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("rounds", nargs="?", type=int, default=2000)
    done, wrong = run(parser.parse_args().rounds)
    for name in WAYS:
        print(f"{done[name]:6} {name}")
    print(f"{sum(done.values()):6} broken plans of {len(done)} kinds, {len(wrong)} not refused as they should be")
    for fault in wrong[:20]:
        print(fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
