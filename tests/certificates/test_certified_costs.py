"""Certificates of costs: what `certify` proves, ``tools/verify.py`` verifies from the round alone; nothing false."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import verify
import verify_round
from helpers.brute_force import optimum
from helpers.night import seeds
from placeopt import Engine, Instance, Plan, read_instance
from placeopt.certificates import certify
from placeopt.documents import dumps
from placeopt.problem import compile_problem
from placeopt.topology import ClusterTopology
from strategies import odd_rounds, rounds
from wrong_certificates import Json, wrong_certificate

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
STORED = {
    "hand/dgx1-1.json": (8000, 28_000),
    "hand/dgx1-tour.json": (8000, 40_905),
    "hand/minskys-wait.json": (8000, 82_640),
    "generated/uniform-20x4x4-s0.json.gz": (25_000, 58_393_468),
}
"""Value and least cost at it: of paths that are short for few jobs at once; of these, and jobs that disturb others."""


def claiming(plan: Plan, value: int, bound: int) -> Plan:
    """Return a plan that says to be worth ``value`` and that no such plan costs less than ``bound``."""
    first = plan.levels[0].model_copy(update={"objective": value, "bound": value})
    second = plan.levels[1].model_copy(update={"objective": bound, "bound": bound})
    return plan.model_copy(update={"levels": (first, second)})


def certified(round_: Instance, plan: Plan) -> tuple[Json, Json]:
    """Return the certificate as it is written, and its claim of cost."""
    certificate: Json = json.loads(dumps(certify(round_, plan, time_limit_s=60, isolation="thread")))
    return certificate, next(claim for claim in certificate["claims"] if claim["claim"] == "cost")


def ran(round_: Instance) -> list[tuple[str, str]]:
    """Return the running jobs, and in which options they run."""
    return [(held.job, held.option) for held in round_.running]


def answer(round_: Instance, certificate: Json, claim: Json) -> str:
    """Return what the checker says of a claim."""
    known = verify_round.Round(json.loads(dumps(round_)), certificate["policy"])
    return verify.answer(known, claim).partition(":")[0]


@pytest.fixture(scope="module", params=STORED, ids=lambda name: Path(name).name.partition(".")[0])
def proven(request: pytest.FixtureRequest, engine: Engine) -> tuple[Instance, Plan, Json, Json]:
    """A stored round, a quick plan that claims the least cost, and its certificate with the claim of cost."""
    round_ = read_instance(INSTANCES / request.param)
    plan = claiming(engine.solve(round_, method="stranding", deterministic=True), *STORED[request.param])
    return round_, plan, *certified(round_, plan)


def test_costs_of_the_library_are_verified(proven: tuple[Instance, Plan, Json, Json]) -> None:
    assert answer(proven[0], proven[2], proven[3]) == "verified"


def test_a_cost_beyond_the_least_is_not_proven(proven: tuple[Instance, Plan, Json, Json]) -> None:
    round_, plan, certificate, _ = proven
    value, least = plan.levels[0].objective, plan.levels[1].objective
    _, claim = certified(round_, claiming(plan, value, least + 1))
    assert "proof" not in claim
    assert claim["why"]
    for proof in ("never negative", proven[3]["proof"]):
        assert answer(round_, certificate, {**claim, "proof": proof}) == "refused"


@pytest.mark.parametrize(("claim", "price"), [("value", "scale"), ("cost", "cost")])
def test_what_is_bounded_has_a_price(proven: tuple[Instance, Plan, Json, Json], claim: str, price: str) -> None:
    """Without one nothing is proven, whatever else a plan pays."""
    round_, _, certificate, _ = proven
    mine = next(one for one in certificate["claims"] if one["claim"] == claim)
    assert answer(round_, certificate, mine) == "verified"
    assert answer(round_, certificate, {**mine, "proof": {**mine["proof"], price: 0}}) == "refused"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True, None, "8000"])
@pytest.mark.parametrize("key", ["bound", "value"])
def test_what_is_claimed_is_an_integer(proven: tuple[Instance, Plan, Json, Json], key: str, number: object) -> None:
    round_, _, certificate, claim = proven
    assert answer(round_, certificate, {**claim, key: number}) == "refused"


@pytest.mark.parametrize("seed", seeds(40))
def test_wrong_costs_are_refused(proven: tuple[Instance, Plan, Json, Json], seed: int) -> None:
    """A plan of that value costs no more, so whatever stands in a proof that all cost more, it is refused."""
    round_, plan, certificate, _ = proven
    value, cost = (level.objective for level in plan.levels)
    wrong = wrong_certificate(certificate, value=value, cost=cost, placed=[], running=ran(round_), seed=seed)
    assert answer(round_, wrong, wrong["claims"][0]) == "refused"


@settings(max_examples=settings().max_examples // 4)
@given(round_=st.one_of(rounds(), rounds(resources=True), odd_rounds()))
def test_no_cost_beyond_the_least_is_verified(engine: Engine, round_: Instance) -> None:
    """By brute force: the least cost may be proven, more never; the proof of one is none of the other."""
    value, least, _ = optimum(compile_problem(round_))
    plan = engine.solve(round_, method="stranding", time_limit_s=5, deterministic=True)
    if len(plan.levels) < 2:
        return
    for bound in (least, least + 1):
        certificate, claim = certified(round_, claiming(plan, value, bound))
        if "proof" in claim:
            assert answer(round_, certificate, claim) == ("verified" if bound == least else "refused")
        assert answer(round_, certificate, {**claim, "bound": least + 1}) != "verified"


@pytest.mark.parametrize("folder", ["hand", "generated", "hard", "real"])
def test_distances_are_those_of_the_topology(folder: str) -> None:
    """Of trees and of trees with links; and the way of each GPU out of its node."""
    for path in sorted((INSTANCES / folder).glob("*.json*")):
        round_ = read_instance(path)
        topology = ClusterTopology(round_.cluster)
        machines = json.loads(dumps(round_))["cluster"]["machines"]
        for machine, distance, root in zip(machines, topology.distance, topology.root, strict=True):
            known = verify.Machine(machine)
            assert known.far == distance.tolist()
            assert known.out == (root + verify.uplink(machine, "machine")).tolist()


LEVELS = ("gpu", "switch", "socket", "node")
MACHINE = {
    "id": "m",
    "parts": [
        {"id": "s0", "level": "socket"},
        {"id": "s1", "level": "socket"},
        {"id": "w", "level": "switch", "parent": "s0"},
    ],
    "gpus": [{"model": "g", "part": part} for part in ("w", "w", "s0", "s1")],
    "links": [{"gpus": [2, 3], "weight": 5}],
}


def most_beyond_cost(costs: verify.Costs, node: verify_round.Node, items: list[verify.Item], cost: int) -> int:
    """Return the most that items pay beyond ``cost`` times what they cost, by all ways to lie on a node."""
    machine, best = costs.machines[node.machine], 0
    sets = [
        [(number, gpus) for gpus in itertools.combinations(range(len(node.gpus)), item.gpus)]
        for number, item in enumerate(items)
        for _ in range(item.most)
    ]
    for chosen in itertools.product(*([None, *each] for each in sets)):
        held = [one for one in chosen if one is not None]
        left = [gpu.units for gpu in node.gpus]
        paid, jobs = 0, [(profile, scattered, gpus) for profile, scattered, gpus in costs.residents(node)]
        for number, gpus in held:
            bundle = items[number].bundle
            for gpu in gpus:
                left[gpu] -= bundle.share
            inside = sum(machine.far[a][b] for a, b in itertools.combinations(gpus, 2))
            away = sum(machine.out[gpu] for gpu in gpus) * (bundle.job_gpus - len(gpus))
            paid += items[number].pays - cost * costs.weight * bundle.weight * (inside + away)
            for other, far, there in jobs:
                if not (far and bundle.scattered):
                    level = min(machine.level[a][b] for a in gpus for b in there)
                    paid -= cost * costs.pair[bundle.profile, other][level]
            jobs.append((bundle.profile, bundle.scattered, gpus))
        if min(left) >= 0:
            best = max(best, paid)
    return best


@pytest.mark.parametrize("seed", seeds(150))
def test_no_contents_pay_more_beyond_their_cost_than_is_accepted(seed: int) -> None:
    draw = random.Random(seed)
    profiles = ["a", "b", "c"]
    slowdowns = [
        {"profile": one, "beside": other, **{f"{level}_thousandths": draw.choice((0, 0, 2, 5)) for level in LEVELS}}
        for one, other in itertools.product(profiles, repeat=2)
    ]
    halved = {str(gpu): 500 for gpu in range(4) if draw.random() < 0.3}
    half = {"id": "r", "options": [{"demand": {"gpu_milli": 500}}], "profile": "a", "communication": {"weight": 1}}
    running = {"job": "r", "option": "default", "assignments": [{"node": "n", "workers": [0], "gpus": halved}]}
    cluster = {"machines": [MACHINE], "nodes": [{"id": "n", "machine": "m"}]}
    document = {"cluster": cluster, "slowdowns": slowdowns, "jobs": [half], "running": [running] if halved else []}
    round_ = verify_round.Round(document, {})
    costs = verify.Costs(round_, {"communication": 1, "interference": draw.choice((0, 1, 3))})
    items = []
    for _ in range(draw.randint(1, 3)):
        size = draw.choice((1, 1, 2, 3))
        share = draw.choice((1000, 500)) if size == 1 else 1000
        total = size + draw.choice((0, 0, 2))
        profile, weight = draw.choice((*profiles, None)), draw.choice((0, 1, 2))
        bundle = verify_round.Bundle(size, share, (), job_gpus=total, scattered=total > size)
        bundle = bundle._replace(profile=profile, weight=weight)
        items.append(verify.Item(size, draw.randint(1, 900), bundle, draw.randint(1, 2)))
    cost = draw.choice((1, 3))
    best = most_beyond_cost(costs, round_.nodes["n"], items, cost)
    assert not costs.overpaid(round_.nodes["n"], items, {}, best, cost)
    assert best == 0 or costs.overpaid(round_.nodes["n"], items, {}, best - 1, cost)
