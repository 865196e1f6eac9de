"""
Random rounds under every kind of policy, with plans of them that need not be valid.

A round of `random_rounds` gets parts and links in its machines, profiles, slowdowns, traffic, minimal utilities and
run times in its jobs, and a policy drawn from all share modes, interference models, fragmentation forms, rules of
postponing, forms of utility, queues and changes. In some, running jobs stand on nodes or GPUs that are not there.
"""

import random
from typing import Any

from campaigns.random_rounds import random_round
from placeopt.model import (
    Changes,
    Cluster,
    Communication,
    Edge,
    Fragmentation,
    Gpu,
    Instance,
    Interference,
    Job,
    Link,
    Machine,
    Part,
    Plan,
    Policy,
    PolicyRef,
    Postpone,
    Queue,
    Quota,
    Slowdown,
    SlowdownCurve,
    TargetWorker,
    Usable,
    Weights,
)

WEIGHTS = ((400, 300, 300, 0, 0), (0, 0, 0, 0, 0), (1000, 0, 0, 0, 0), (200, 200, 200, 200, 200), (0, 0, 1000, 0, 0))
NAMES = ("communication", "interference", "fragmentation", "horus", "resource")


def any_round(rng: random.Random) -> tuple[Instance, Plan]:
    """Make a round under a random policy, and a plan that was valid before all that was added."""
    plain, plan = random_round(rng)
    machines = tuple(_machine(rng, one) for one in plain.cluster.machines)
    cluster = Cluster(machines=machines, domains=plain.cluster.domains, nodes=plain.cluster.nodes)
    policy = any_policy(rng)
    parts = {
        "name": "any",
        "cluster": cluster,
        "jobs": tuple(_job(rng, one) for one in plain.jobs),
        "slowdowns": tuple(
            Slowdown(
                profile=a,
                beside=b,
                gpu_thousandths=rng.randrange(900),
                socket_thousandths=rng.randrange(500),
                node_thousandths=rng.randrange(300),
            )
            for a, b in (("a", "a"), ("a", "b"), ("b", "a"))
            if rng.random() < 0.8
        ),
        "policy": policy,
    }
    running = list(plain.running)
    if running and rng.random() < 0.4:
        one = rng.randrange(len(running))
        running[one] = elsewhere(rng, running[one])
    round_ = Instance(**parts, running=tuple(running), now_ms=5_000)
    return round_, referring(plan, round_, policy)


def referring(plan: Plan, round_: Instance, policy: Policy | None = None) -> Plan:
    """Let a plan refer to a round and to a policy."""
    ref = plan.instance.model_copy(update={"name": round_.name, "digest": round_.digest, "revision": round_.revision})
    policy = plan.policy.values if policy is None else policy
    by = PolicyRef(name=policy.name, digest=policy.digest, values=policy)
    return plan.model_copy(update={"instance": ref, "policy": by})


def elsewhere(rng: random.Random, running: Any) -> Any:
    """Let a running job stand on a node that is gone, or hold a GPU beyond those that its node lists."""
    assignments = list(running.assignments)
    at = rng.randrange(len(assignments))
    one = assignments[at]
    if rng.random() < 0.5 or not one.gpus:
        assignments[at] = one.model_copy(update={"node": f"gone-{rng.randrange(3)}"})
    else:
        old, new = next(iter(one.gpus)), str(rng.choice((4, 7, 1023)))
        workers = tuple(
            w.model_copy(update={"gpus": tuple(int(new) if g == int(old) else g for g in w.gpus)}) for w in one.workers
        )
        gpus = {new if g == old else g: milli for g, milli in one.gpus.items()}
        assignments[at] = one.model_copy(update={"gpus": gpus, "workers": workers})
    return running.model_copy(update={"assignments": tuple(assignments)})


def any_policy(rng: random.Random) -> Policy:
    """Draw a policy from all that there are."""
    share_mode = rng.choice(("exclusive", "fraction", "overcommit"))
    most = {"exclusive": None, "fraction": rng.choice((None, 2)), "overcommit": rng.choice((2, 3))}[share_mode]
    curve: Any = rng.choice(("gtx-1080", "rtx-2080", SlowdownCurve(linear_millionths=1_200_000)))
    return Policy(
        share_mode=share_mode,
        jobs_per_gpu_max=most,
        usable=Usable(network_gpu_jobs_percent=rng.choice((0, 75)), pcie_bandwidth_percent=rng.choice((0, 100))),
        weights=Weights(**dict(zip(NAMES, rng.choice(WEIGHTS), strict=True))),
        interference=Interference(model=rng.choice(("pairwise", "worst", "curve")), curve=curve),
        fragmentation=Fragmentation(
            form=rng.choice(("partial", "fgd")),
            target=rng.choice(((), (TargetWorker(gpus=2), TargetWorker(gpu_models=("V100",), count=3)))),
        ),
        order=rng.choice(("fcfs", "priority", "swaf", "value_density", "weighted_fair")),
        queues=(
            Queue(
                id="q0",
                quota=Quota(gpu_milli=rng.choice((0, 3_000, 9_000))),
                borrow=Quota(gpu_milli=rng.choice((None, 500))),
            ),
            Queue(
                id="q1",
                dominant_share_percent=rng.choice((None, 0, 30)),
                borrow_percent=rng.choice((0, 40)),
                quota=Quota(cpu_millicores=rng.choice((None, 9_000)), memory_mib=90_000),
            ),
        ),
        changes=Changes(
            moves_max=rng.choice((0, 2)),
            shrinks_max=rng.choice((0, 2)),
            preemptions_max=rng.choice((0, 2)),
            last_submitted_first=rng.random() < 0.5,
        ),
        postpone=Postpone(
            rule=rng.choice(("none", "utility", "utility", "lookahead")), utility=rng.choice(("sum", "sc17"))
        ),
    )


def _machine(rng: random.Random, one: Machine) -> Machine:
    """Give a machine sockets with a switch, links, a table of distances, or leave it plain."""
    n, kind = len(one.gpus), rng.choice(("plain", "parts", "links", "matrix"))
    if kind == "plain":
        return one
    if kind == "matrix":
        matrix = tuple(tuple(0 if a == b else 1 + 19 * (a // 2 != b // 2) for b in range(n)) for a in range(n))
        return Machine(**{**dict(one), "gpu_distance_matrix": matrix})
    parts = (
        Part(id="s0", level="socket"),
        Part(id="s1", level="socket"),
        Part(id="w", level="switch", parent="s1", uplink_weight=5),
    )
    above = ("s0", "s0", "w", None) if kind == "parts" else ("s0", "s1", "s0", "w")
    gpus = tuple(Gpu(**{**dict(gpu), "part": above[i % 4]}) for i, gpu in enumerate(one.gpus))
    links = (Link(gpus=(0, 1), weight=2),) if kind == "links" else ()
    return Machine(**{**dict(one), "gpus": gpus, "parts": parts, "links": links})


def _job(rng: random.Random, one: Job) -> Job:
    """Give a job a profile, traffic, a minimal utility and run times."""
    most = max(option.workers for option in one.options)
    edges = (Edge(ranks=(0, most - 1), weight=3),) if most > 1 and rng.random() < 0.3 else ()
    options = tuple(
        option.model_copy(
            update={
                "run_time_ms": rng.choice((None, 1_000, 60_000)),
                "demand": option.demand.model_copy(update={"gpu_utilisation_percent": rng.randrange(101)}),
            }
        )
        for option in one.options
    )
    return Job(
        **{
            **dict(one),
            "options": options,
            "profile": rng.choice((None, "a", "b")),
            "communication": Communication(weight=rng.choice((0, 1, 4)), edges=edges),
            "utility_min_thousandths": rng.choice((one.utility_min_thousandths, None, 0, 300, 700, 1000, 1001)),
        }
    )
