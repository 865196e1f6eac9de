"""Relations between jobs: exact models, heuristics and the referee against brute force over the records."""

from hypothesis import event, given
from hypothesis import strategies as st

from helpers.plans import plan_for
from helpers.relation_oracle import RelationOracle, Worker, nodes_of
from placeopt import Instance, audit, build
from placeopt.check import violations
from placeopt.live_cluster import Engine
from placeopt.solving import METHODS
from strategies import Choice, choices, relation_rounds

EXACT = ("counts", "counts-cpsat", "assignment")
OTHERS = [name for name in METHODS if name not in EXACT and "cbc" not in name]
ROUNDS = st.one_of(relation_rounds(), relation_rounds(running=True))


@given(round_=ROUNDS, other=st.sampled_from(OTHERS))
def test_exact_models_find_what_brute_force_finds(engine: Engine, round_: Instance, other: str) -> None:
    """
    The best value, and at it the least that broken soft relations cost.

    Of every other method the plan is lawful and what it says of the best value is true.
    """
    value, cost = RelationOracle(round_).best()
    for method in EXACT:
        plan = engine.solve(round_, method=method, time_limit_s=20)
        assert (plan.levels[0].objective, plan.levels[0].bound) == (value, value), method
        assert plan.status == "optimal", method
        assert sum(one.raw for name, one in plan.costs.items() if name == "relations") == cost, method
    plan = engine.solve(round_, method=other, time_limit_s=1, deterministic=True)
    found = plan.levels[0]
    assert violations(round_, plan) + audit(round_, plan) == [], other
    assert found.objective <= value <= (value if found.bound is None else found.bound), other
    assert plan.status != "optimal" or found.objective == value, other
    event(f"another method finds {'all' if found.objective == value else 'less'}")


@given(round_=ROUNDS, choice=choices)
def test_the_referee_judges_as_brute_force_does(round_: Instance, choice: Choice) -> None:
    """Of any layout of the waiting jobs, beside what runs: who is near whom, and apart."""
    oracle = RelationOracle(round_)
    gpus = {node: list(range(count)) for node, count in oracle.gpus.items()}
    for assignment in (a for held in round_.running for a in held.assignments):
        gpus[assignment.node] = [gpu for gpu in gpus[assignment.node] if str(gpu) not in assignment.gpus]
    workers = [
        Worker(held.job, node, stays=True, ran=True)
        for held in round_.running
        for counts in nodes_of(held).values()
        for node in counts.elements()
    ]
    placed = {}
    for job in round_.jobs:
        if job.id in oracle.running or choice.chance(0.2):
            continue
        where: list[tuple[str, tuple[int, ...], str]] = []
        for leaf in job.options[0].leaves:
            for _ in range(leaf.workers):
                room = [n for n in gpus if len(gpus[n]) >= leaf.demand.gpus and not oracle.nodes[n].drained]
                if room:
                    node = choice.pick(room)
                    where.append((node, tuple(gpus[node].pop(0) for _ in range(leaf.demand.gpus)), leaf.id))
        if len(where) == job.options[0].most_workers:
            workers += [Worker(job.id, node, stays=False, ran=False) for node, _, _ in where]
            places = where if job.options[0].groups else [(node, held) for node, held, _ in where]
            placed[job.id] = build.placement(job, places)
    found = violations(round_, plan_for(round_, placed))
    assert (found == []) == oracle.is_lawful(workers), found
    assert {violation.rule for violation in found} <= {"near", "apart"}
