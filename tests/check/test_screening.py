"""The first pass over a plan clears nothing that a rule would refuse: judged without it, plans break the same."""

import random
from collections import Counter
from typing import NamedTuple

from campaigns import mutated_plans
from campaigns.broken_plans import WAYS, Scene
from helpers.plans import plan_for
from placeopt import Engine
from placeopt.build import instance, job
from placeopt.check import Violation
from placeopt.check.case import CheckCase
from placeopt.check.directory import Directory
from placeopt.check.rules import RULES
from placeopt.check.screening import Screening
from placeopt.generators import generate
from placeopt.model import Instance, Plan


class Judged(NamedTuple):
    """Violations and what stands, in any order."""

    found: Counter[Violation]
    standing: Counter[Violation]


def judged(round_: Instance, plan: Plan, *, screened: bool) -> Judged:
    """Judge a plan by all rules."""
    case = CheckCase.of(round_, plan, Directory(round_), screened=screened)
    for check in RULES:
        check(case)
    return Judged(Counter(case.found), Counter(case.standing))


def test_broken_plans_break_the_same_with_and_without() -> None:
    """Each way of breaking a plan, on 40 random rounds."""
    compared, standing = 0, 0
    for seed in range(40):
        scene = Scene(seed)
        for break_ in WAYS.values():
            broken = break_(scene)
            if broken is None:
                continue
            with_it = judged(broken.instance, broken.plan, screened=True)
            assert with_it == judged(broken.instance, broken.plan, screened=False)
            assert with_it.found or with_it.standing
            compared += 1
            standing += bool(with_it.standing)
    assert compared > 1000
    assert standing > 20


def test_mutated_plans_break_the_same_with_and_without() -> None:
    """Random edits, several at once, of rounds under every rule of sharing, postponing and interference."""
    refused = 0
    with Engine(isolation="thread") as engine:
        for seed in range(30):
            rng = random.Random(seed)
            base = mutated_plans.rounds(rng, engine)
            for _ in range(10):
                pair, _ = mutated_plans.mutated(rng, base)
                with_it = judged(*pair, screened=True)
                assert with_it == judged(*pair, screened=False)
                refused += bool(with_it.found)
    assert refused > 100


def test_a_plan_of_plain_placements_is_cleared() -> None:
    """Otherwise the pass is of no use: what it leaves are the jobs of several workers."""
    round_ = generate("uniform", jobs=400, nodes=50, gpus=8, seed=7)
    with Engine(isolation="thread") as engine:
        plan = engine.solve(round_, method="stranding")
    screening = Screening(Directory(round_), round_.policy, plan.placements)
    workers = [sum(len(a.workers) for a in held.assignments) for held in plan.placements]
    assert len(plan.placements) > 300
    assert not screening.irregular
    assert not screening.in_doubt
    assert len(screening.restricted) == sum(number > 1 for number in workers)


def test_a_node_that_holds_too_much_is_in_doubt() -> None:
    """One thousandth too much on a GPU, beside a node that is full."""
    jobs = [job(name, gpus=1, gpu_milli=milli) for name, milli in (("a", 600), ("b", 400), ("c", 600), ("d", 401))]
    round_ = instance(2, jobs)
    plan = plan_for(round_, {"a": [("n0", [0])], "b": [("n0", [0])], "c": [("n1", [0])], "d": [("n1", [0])]})
    screening = Screening(Directory(round_), round_.policy, plan.placements)
    assert screening.in_doubt == {"n1"}
    assert not screening.restricted
