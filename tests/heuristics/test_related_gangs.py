"""Waiting jobs that want each other: greedy starts them together when the first of them comes, or none."""

import pytest

from helpers.night import seeds
from helpers.relation_oracle import RelationOracle
from placeopt import Instance, build, solve
from placeopt.check import violations
from placeopt.model import Domain, Job, LabelExpression, Policy, Relation, Weights
from strategies.choice import Choice, seeded

NO_COST = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))
METHODS = ("best-fit", "stranding", "fcfs", "gpu-packing", "prices")


def near(app: str, level: str = "node") -> Relation:
    chosen = LabelExpression(key="app", operator="In", values=(app,))
    return Relation(kind="near", level=level, selector=(chosen,))


def ring(choice: Choice, level: str, *, workers: int = 1) -> list[Job]:
    """Return two or three jobs of which each wants the next one, and the last the first."""
    names = "abc"[: choice.number(2, 3)]
    return [
        build.job(
            name,
            labels={"app": name},
            relations=(near(names[(i + 1) % len(names)], level),),
            gpus=choice.number(1, 2),
            workers=choice.number(1, workers),
        )
        for i, name in enumerate(names)
    ]


def nodes_of(choice: Choice) -> Instance:
    """Return nodes of one to six GPUs in two zones, some of whose GPUs a running job holds."""
    sizes = [choice.number(1, 6) for _ in range(4)]
    machines = [build.machine(f"m{i}", gpus=size) for i, size in enumerate(sizes)]
    zones = [Domain(id=f"z{i}", level="zone") for i in range(2)]
    nodes = [build.node(f"n{i}", f"m{i}", domain=choice.pick(zones).id) for i in range(4)]
    held = [(f"n{i}", choice.number(0, size - 1)) for i, size in enumerate(sizes)]
    jobs = [build.job(f"held-{name}", gpus=count, value=0) for name, count in held if count]
    runs = [
        build.running(one, [(name, range(count))])
        for one, (name, count) in zip(jobs, [entry for entry in held if entry[1]], strict=True)
    ]
    return build.instance(nodes, jobs, machines=machines, domains=zones, running=runs, policy=NO_COST)


@pytest.mark.parametrize("seed", seeds(30))
def test_those_that_want_each_other_on_a_node_start_wherever_one_has_room(seed: int) -> None:
    """All of a ring share a node: greedy finds one just where brute force does."""
    choice = seeded(f"rings-{seed}")
    base = nodes_of(choice)
    round_ = base.model_copy(update={"jobs": (*base.jobs, *ring(choice, "node"))})
    value, _ = RelationOracle(round_).best()
    for method in METHODS:
        plan = solve(round_, method=method, isolation="thread")
        assert (plan.levels[0].objective, violations(round_, plan)) == (value, []), method


@pytest.mark.parametrize("seed", seeds(15))
def test_beside_other_jobs_and_in_zones_plans_are_lawful(seed: int) -> None:
    """Rings of gangs, others apart from them: all of a ring start or none, at most what brute force places."""
    choice = seeded(f"zones-{seed}")
    base = nodes_of(choice)
    apart = near("a", "zone").model_copy(update={"kind": "apart"})
    others = [build.job("other", gpus=1, relations=(apart,) if choice.chance(0.5) else ())]
    jobs = choice.shuffled([*ring(choice, choice.pick(("zone", "node")), workers=2), *others])
    round_ = base.model_copy(update={"jobs": (*base.jobs, *jobs)})
    value, _ = RelationOracle(round_).best()
    for method in METHODS:
        plan = solve(round_, method=method, isolation="thread")
        assert violations(round_, plan) == [], method
        assert plan.levels[0].objective <= value, method


def test_the_first_of_two_takes_both() -> None:
    """A pair comes before a job that would take the room of its second; one comes first where the pair has no room."""
    a, b = (build.job(name, labels={"app": name}, relations=(near(other),), gpus=2) for name, other in ("ab", "ba"))
    whole = build.job("whole", gpus=4, value=1)
    for jobs, started in (([a, whole, b], {"a", "b"}), ([whole, a, b], {"whole"})):
        round_ = build.instance(1, jobs, machines=[build.machine(gpus=4)], policy=NO_COST)
        plan = solve(round_, method="fcfs", isolation="thread")
        assert {one.job for one in plan.placements} == started
