"""
Campaign: small random rounds with limits above requests, and resident clusters of such jobs, step by step.

    python tests/campaigns/limits.py --rounds 3000 --clusters 500

A round is solved and compared with the optimum of brute force, where only requests count; the referee and the audit
read the plan, and the shares of all jobs must be those of ``helpers.granted_shares``. A cluster is changed by plans for
single jobs, whole rounds and releases: each plan and each snapshot must state the shares of that moment, a fresh engine
must take the snapshot, and a whole round on the resident cluster must be the one that is made anew. Ends with code 1 if
anything differed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from helpers.brute_force import optimum
from helpers.granted_shares import due
from helpers.small_rounds import random_round
from placeopt import Engine, Instance, Plan, audit, violations
from placeopt.formats.documents import dumps, loads
from placeopt.model import Placement
from placeopt.problem import compile_problem


def limited_round(seed: int) -> Instance | None:
    """Return the random round of a seed if more than a request may be granted in it; every second has changes."""
    round_ = random_round(np.random.default_rng(seed), changes=seed % 2 == 0)
    demands = [option.demand for job in round_.jobs for option in job.options]
    limited = any((demand.gpu_milli_limit or 0) > demand.gpu_milli for demand in demands)
    usual = round_.policy.share_mode == "fraction" and round_.policy.postpone.rule != "lookahead"
    return round_ if limited and usual else None


def wrong_shares(instance: Instance, placements: tuple[Placement, ...], judged: set[str] | None = None) -> list[str]:
    """Compare the shares of placements, all that there are on their GPUs, with the rule; of the jobs ``judged``."""
    expected = due(instance, placements, instance.policy)
    found = {(p.job, (a.node, gpu)): milli for p in placements for a in p.assignments for gpu, milli in a.gpus.items()}
    return [
        f"{job} on {place}: {found[job, place]} milli, expected {milli}"
        for (job, place), milli in expected.items()
        if found[job, place] != milli and (judged is None or job in judged)
    ]


def examine_round(engine: Engine, instance: Instance, seen: Counter[str]) -> list[str]:
    """Solve a round; return what is wrong with the plan, and count what was seen in it."""
    plan = engine.solve(instance, time_limit_s=30)
    wrong = [str(found) for found in violations(instance, plan)] + audit(instance, plan)
    wrong += wrong_shares(instance, plan.placements)
    problem = compile_problem(instance)
    value, cost, _ = optimum(problem)
    reached = {level.name: level.objective for level in plan.levels}
    if plan.status == "optimal" and (reached["value"], reached.get("cost", cost)) != (value, cost):
        wrong.append(f"reached {reached}, the optimum is {value} at cost {cost}")
    demands = {(job.id, option.id): option.demand for job in instance.jobs for option in job.options}
    requested = sum(demands[p.job, p.option].gpu_milli * len(a.gpus) for p in plan.placements for a in p.assignments)
    if plan.facts["gpu_milli_placed"] != requested:
        wrong.append(f"gpu_milli_placed {plan.facts['gpu_milli_placed']}, requested are {requested}")
    seen["rounds"] += 1
    seen["proven"] += plan.status == "optimal"
    seen["with running jobs"] += bool(instance.running)
    seen["with queues"] += bool(instance.policy.queues)
    for kind in ("moved", "shrunk", "preempted"):
        seen[kind] += bool(getattr(plan, kind))
    low = {(p.job, p.option): demands[p.job, p.option].gpu_milli for p in plan.placements}
    held = [(low[p.job, p.option], milli) for p in plan.placements for a in p.assignments for milli in a.gpus.values()]
    seen["shares above the request"] += sum(milli > request for request, milli in held)
    before = {held.job: held.assignments for held in instance.running}
    changed = {entry.job for entry in (*plan.moved, *plan.shrunk)}
    seen["running jobs whose share alone changed"] += sum(
        p.job in before and p.job not in changed and p.assignments != before[p.job] for p in plan.placements
    )
    return wrong


def examine_cluster(instance: Instance, rng: np.random.Generator, seen: Counter[str], steps: int = 8) -> list[str]:
    """Change a resident cluster step by step; return what is wrong with its plans and snapshots."""
    wrong: list[str] = []
    with Engine(isolation="thread") as engine, Engine(isolation="thread") as other:
        engine.load(instance)
        for _ in range(steps):
            snapshot = engine.snapshot
            runs = [held.job for held in snapshot.running]
            waiting = [job.id for job in snapshot.jobs if job.id not in runs]
            match int(rng.integers(4)):
                case 0 if runs:
                    engine.release(runs[int(rng.integers(len(runs)))])
                    seen["releases"] += 1
                case 1:
                    plan = engine.place(method="stranding", deterministic=True, warm=False)
                    anew = other.solve(snapshot, method="stranding", deterministic=True)
                    if plan.placements != anew.placements:
                        wrong.append("a whole round on the resident cluster differs from one made anew")
                    wrong += wrong_shares(snapshot, plan.placements)
                    engine.commit(plan, movable=True, shrinkable=True, preemptible=True)
                    seen["whole rounds"] += 1
                case _ if waiting:
                    some = [str(name) for name in rng.permutation(waiting)[: int(rng.integers(1, 3))]]
                    plan = engine.place(some, explain=False)
                    wrong += _wrong_partial(snapshot, plan)
                    engine.commit(plan)
                    seen["plans for some jobs"] += bool(plan.placements)
            now = engine.snapshot
            if now is not instance:
                wrong += wrong_shares(now, now.running)
            other.load(loads(Instance, dumps(now)))
            seen["snapshots"] += 1
    return wrong


def _wrong_partial(snapshot: Instance, plan: Plan) -> list[str]:
    """Judge a plan for some jobs from nothing: by the whole referee, and by the shares of these jobs."""
    placed = {placement.job for placement in plan.placements}
    named = plan.model_copy(update={"instance": plan.instance.model_copy(update={"digest": None})})
    wrong = [str(found) for found in violations(snapshot, named)]
    return wrong + wrong_shares(snapshot, (*plan.placements, *snapshot.running), placed)


def run(rounds: int, clusters: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Examine so many rounds and clusters; return what was seen and what was wrong."""
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    with Engine(isolation="thread") as engine:
        while seen["rounds"] < rounds:
            round_ = limited_round(seed)
            if round_ is not None:
                wrong += [f"round {seed}: {what}" for what in examine_round(engine, round_, seen)]
            seed += 1
    while seen["clusters"] < clusters:
        round_ = limited_round(seed)
        if round_ is not None:
            wrong += [f"cluster {seed}: {w}" for w in examine_cluster(round_, np.random.default_rng(seed), seen)]
            seen["clusters"] += 1
        seed += 1
    return seen, wrong


def main() -> int:
    """Run the campaign; print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    seen, wrong = run(given.rounds, given.clusters, given.seed)
    for what, count in seen.items():
        print(f"{count:8,} {what}")
    print(f"{len(wrong):8,} wrong")
    for what in wrong[:20]:
        print(what)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
