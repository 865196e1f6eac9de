"""The bound on interference of starting jobs: against every plan of small rounds, and by hand."""

import numpy as np

from helpers.brute_force import Enumeration
from helpers.machines import sockets
from placeopt import Engine
from placeopt.build import instance, job, machine, running
from placeopt.model import Instance, Interference, Job, Policy, Slowdown, Weights
from placeopt.problem import State, compile_problem
from placeopt.terms import weighted_costs

ODDS = (0.6, 0.15, 0.15, 0.1)
ALONE = Policy(weights=Weights(communication=0, interference=1000, fragmentation=0))
TWO_SOCKETS = sockets(2, 2)


def beside(profile: str, other: str, *levels: int) -> Slowdown:
    """Slowdown with excess on a GPU, a switch, a socket and a node."""
    names = ("gpu_thousandths", "switch_thousandths", "socket_thousandths", "node_thousandths")
    return Slowdown.model_validate({"profile": profile, "beside": other, **dict(zip(names, levels, strict=True))})


def loud(count: int) -> list[Job]:
    return [job(f"l{i}", profile="loud") for i in range(count)]


LOUD = (beside("loud", "loud", 100, 100, 100, 100),)


def weight_of(round_: Instance) -> int:
    """Return the weight of interference, the only cost."""
    (weighted,) = weighted_costs(compile_problem(round_))
    return weighted.weight


def proven(engine: Engine, round_: Instance) -> tuple[int, int]:
    """Return the value of the plan that fillings begin with, and what they prove of the cost of those worth as much."""
    value, cost = engine.solve(round_, method="filling-costs", time_limit_s=60).levels
    assert cost.bound is not None
    return value.objective, cost.bound


def bound_of(engine: Engine, round_: Instance) -> int:
    """Return what is proven of the cost of plans that place as many jobs as there is room for."""
    value, bound = proven(engine, round_)
    assert value == min(len(round_.jobs), 4 * len(round_.cluster.nodes))
    return bound


def random_round(rng: np.random.Generator) -> Instance:
    """One or two nodes, of sockets or none; jobs of three profiles, on one or two GPUs or half of one, some running."""
    falling = rng.random() < 0.5
    slowdowns = []
    for profile in "abc":
        for other in "abc":
            levels = rng.integers(0, 5, 4) * 100
            levels = np.sort(levels)[::-1] if falling else levels
            levels[3] *= int(rng.random() < 0.5)
            if rng.random() < 0.7:
                slowdowns.append(beside(profile, other, *levels.tolist()))
    jobs, runs = [], []
    for i in range(int(rng.integers(4, 6))):
        shape = ({"gpus": 1}, {"gpus": 2}, {"gpus": 1, "gpu_milli": 500}, {"workers": 2})[int(rng.choice(4, p=ODDS))]
        jobs.append(job(f"j{i}", value=int(rng.integers(1, 4)), profile=str(rng.choice([*"abc"])), **shape))
    nodes = int(rng.integers(1, 3))
    for n in range(nodes):
        if rng.random() < 0.5:
            jobs.append(job(f"r{n}", profile=str(rng.choice([*"abc"]))))
            runs.append(running(jobs[-1], [(f"n{n}", [int(rng.integers(3))])]))
    kind = TWO_SOCKETS if rng.random() < 0.5 else machine(gpus=3)
    return instance(nodes, jobs, machines=[kind], running=runs, slowdowns=tuple(slowdowns), policy=ALONE)


def test_no_plan_costs_less(engine: Engine) -> None:
    """At the value of a plan; often that is more than running jobs cost, and the least that a plan costs."""
    above = tight = 0
    for number in range(60):
        round_ = random_round(np.random.default_rng(77_000 + number))
        problem = compile_problem(round_)
        if not weighted_costs(problem):
            continue
        everything = Enumeration(problem)
        rows, values = everything.rows()
        (weighted,) = weighted_costs(problem)
        now = weighted.weight * weighted.cost.score(problem, State(problem).allocation())
        least, bound = proven(engine, round_)
        optimum = int(everything.costs(rows)[values >= least].min())
        assert bound <= optimum, number
        above += bound > now
        tight += now < bound == optimum
    assert above >= 10
    assert tight >= 1


def test_pigeonhole_over_nodes(engine: Engine) -> None:
    """Five loud jobs on two nodes: three and two, so 3 + 1 pairs of 200; nobody meets on a third node."""
    round_ = instance(2, loud(5), slowdowns=LOUD, policy=ALONE)
    assert bound_of(engine, round_) == weight_of(round_) * 4 * 200
    assert bound_of(engine, instance(5, loud(5), slowdowns=LOUD, policy=ALONE)) == 0


def test_pigeonhole_over_sockets(engine: Engine) -> None:
    """Four loud jobs where only a socket is shared in noise: two sockets with two each."""
    slow = (beside("loud", "loud", 100, 100, 100, 0),)
    round_ = instance(1, loud(4), machines=[TWO_SOCKETS], slowdowns=slow, policy=ALONE)
    best, least, _ = Enumeration(compile_problem(round_)).best()
    assert best == 4
    assert bound_of(engine, round_) == least == weight_of(round_) * 2 * 200


def test_profiles_keep_apart_and_beside_what_runs(engine: Engine) -> None:
    """Two kinds that disturb each other fill a node each; one that cannot but join a running job pays for it."""
    pair = [job(f"{p}{i}", profile=p) for p in "ab" for i in range(4)]
    slow = (beside("a", "b", 300, 300, 300, 300),)
    assert bound_of(engine, instance(2, pair, slowdowns=slow, policy=ALONE)) == 0
    here = job("here", profile="b")
    runs = [running(here, [("n0", [0])])]
    beside_it = instance(1, [here, *pair[:4]], running=runs, slowdowns=slow, policy=ALONE)
    assert bound_of(engine, beside_it) == weight_of(beside_it) * 3 * 300


def test_only_pairs_count(engine: Engine) -> None:
    """Where the worst neighbour counts alone, nothing is claimed."""
    slow = (*LOUD, beside("deaf", "mute", 0, 0, 0, 0))
    policy = ALONE.model_copy(update={"interference": Interference(model="worst")})
    round_ = instance(1, [*loud(4), job("d", profile="deaf")], slowdowns=slow, policy=policy)
    assert bound_of(engine, round_) == 0
