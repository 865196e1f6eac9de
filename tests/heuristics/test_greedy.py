"""Greedy: which GPUs of a machine it takes, when it stops, and what it places by class when time is short."""

from collections.abc import Callable

import numpy as np
import pytest

from helpers.live_engine import engine_of
from helpers.night import seeds
from placeopt import generate, solve
from placeopt.build import instance, job, machine, node, option
from placeopt.heuristics import assign_gpus, greedy, order_jobs, waiting_allowances
from placeopt.model import Domain, Flavor, FlavorAllowance, Group, Instance, Link, Policy, Queue, Quota, Split
from placeopt.problem import Problem, compile_problem
from placeopt.terms import value


def tried_out(distance: np.ndarray, need: int) -> list[int]:
    """The choice as it is defined, GPU by GPU: from every one, always the nearest; of equals the first."""
    best: tuple[int, list[int]] | None = None
    for first in range(len(distance)):
        taken, total = [first], 0
        while len(taken) < need:
            left = [i for i in range(len(distance)) if i not in taken]
            near = min(left, key=lambda i: (sum(int(distance[i, t]) for t in taken), i))
            total += sum(int(distance[near, t]) for t in taken)
            taken.append(near)
        if best is None or total < best[0]:
            best = (total, taken)
    return sorted(best[1])


@pytest.mark.parametrize("seed", seeds(40))
def test_the_closest_gpus_are_those_of_trying_everything(seed: int) -> None:
    """Of idle GPUs at random distances, ties included."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 12))
    distance = np.triu(rng.integers(1, 6, (size, size)), 1)
    distance = distance + distance.T
    need = int(rng.integers(1, size + 1))
    kind = machine(gpus=size, gpu_distance_matrix=tuple(map(tuple, distance.tolist())))
    problem = compile_problem(instance(1, [job("a", gpus=need, communication={"weight": 1})], machines=[kind]))
    found = greedy(problem, np.array([0]), "close_fit").allocation[0]
    assert sorted(found.gpus) == tried_out(distance, need)


def test_half_of_a_large_ring_is_one_arc() -> None:
    """512 of 1,024 GPUs, grown from few of them, since from all it would take 400 million steps: neighbours all."""
    links = tuple(Link(gpus=(i, (i + 1) % 1024), weight=1) for i in range(1024))
    gpu = machine(gpus=1).gpus[0].model_copy(update={"uplink_weight": 1000})
    ring = machine(gpus=[gpu] * 1024, links=links, cpu_millicores=10**7)
    problem = compile_problem(instance(1, [job("a", gpus=512, communication={"weight": 1})], machines=[ring]))
    found = greedy(problem, np.array([0])).allocation[0]
    steps = np.diff([*found.gpus, found.gpus[0] + 1024])
    assert sorted(steps.tolist()) == [*[1] * 511, 513]  # one gap, of all GPUs that are free


def stopped_after(asks: int) -> Callable[[], bool]:
    """Not over for so many questions, and over from then on."""
    left = iter(range(asks))
    return lambda: next(left, None) is None


@pytest.mark.parametrize(
    "run",
    [
        greedy,
        lambda p, o, **c: greedy(p, o, only=waiting_allowances(p).option, **c),
    ],
)
def test_the_clock_stops_inside_one_jobs_choice(run: Callable) -> None:
    """A job of 12 workers asks before each of them; stopped at the fifth question, it was not reached."""
    problem = compile_problem(instance(3, [job("a", workers=12)]))
    late, timely = (run(problem, np.array([0]), cancelled=stopped_after(asks)) for asks in (5, 50))
    assert (late.allocation[0], late.not_reached) == (None, (0,))
    assert timely.allocation[0] is not None
    assert timely.not_reached == ()


def test_the_clock_stops_between_gpus_of_a_mix() -> None:
    problem = compile_problem(instance(2, [job("a", workers=2), job("b", workers=2)]))
    wanted = [(0, 0, (0, 1)), (1, 0, (0, 1))]
    assert [held is not None for held in assign_gpus(problem, wanted)] == [True, True]
    assert [held is not None for held in assign_gpus(problem, wanted, stopped_after(3))] == [True, False]


def test_time_that_is_over_reaches_nobody() -> None:
    """Jobs that were not reached are named."""
    problem = compile_problem(instance(2, [job(f"j{i}") for i in range(5)]))
    assert len(greedy(problem, order_jobs(problem, "fcfs"), deadline=0.0).not_reached) == 5


class TestByClass:
    """What is left at the deadline is placed by class: all jobs of one kind at once, in arrays."""

    def test_a_grace_after_the_deadline_places_all_but_gangs(self) -> None:
        """Gangs are left to those who know where their workers should be; what was placed is near greedy's value."""
        problem = compile_problem(generate("fractions", jobs=800, nodes=80, gpus=4, seed=80))
        order = order_jobs(problem, problem.policy.order)
        result = greedy(problem, order, deadline=0.0, fill=True, grace_s=60.0)
        none = greedy(problem, order, deadline=0.0, fill=True)
        assert result.by_class > 150
        assert (none.by_class, len(none.not_reached)) == (0, len(order))
        assert all(is_gang(problem, one) for one in result.not_reached)
        assert value(problem, result.allocation) >= 0.9 * value(problem, greedy(problem, order).allocation)

    def test_shares_fill_gpus_and_sets_take_idle_ones(self) -> None:
        """Two nodes of two GPUs, a pair and four halves: the pair needs a node alone, the halves share the other."""
        jobs = [job("pair", gpus=2, value=9), *(job(f"half{i}", gpu_milli=500, value=2) for i in range(4))]
        problem = compile_problem(instance(2, jobs, machines=[machine(gpus=2)]))
        found = greedy(problem, np.arange(5), deadline=0.0, fill=True, grace_s=60.0)
        assert not found.not_reached
        nodes = [held.nodes for held in found.allocation if held is not None]
        assert nodes[1:] == [nodes[1]] * 4 != [nodes[0]] * 4

    def test_a_job_that_no_option_serves_waits(self) -> None:
        """All its options are below the utility that it asks for."""
        none = job("none", gpus=1, value=9, utility_min_thousandths=900, utility_thousandths=500)
        problem = compile_problem(instance(1, [none, job("one")], machines=[machine(gpus=1)]))
        found = greedy(problem, np.arange(2), deadline=0.0, fill=True, grace_s=60.0)
        assert [held is not None for held in found.allocation] == [False, True]


def is_gang(problem: Problem, one: int) -> bool:
    return any(problem.options.bundles[o] > 1 for o in problem.options_of(one))


FLAVORS = ("full", "free")


@pytest.fixture
def of_flavors() -> Instance:
    """A job that fits on nodes of the second of two flavors only, and so not on nodes of none."""
    allowances = (
        FlavorAllowance(flavor="full", quota=Quota(gpu_milli=0)),
        FlavorAllowance(flavor="free", quota=Quota(gpu_milli=2000)),
    )
    flavors = tuple(Flavor(id=name, node_selector={"pool": name}) for name in FLAVORS)
    return instance(
        [node(name, labels={"pool": name}) for name in FLAVORS],
        [job("w", queue="q")],
        policy=Policy(queues=(Queue(id="q", flavors=allowances),), flavors=flavors),
    )


@pytest.mark.parametrize("method", ["stranding", "fcfs", "best-fit", "swaf", "drb"])
def test_a_flavor_without_room_says_nothing_of_the_others(of_flavors: Instance, method: str) -> None:
    (placement,) = solve(of_flavors, method=method).placements
    assert placement.assignments[0].node == "free"


def test_nor_does_it_in_a_single_decision(of_flavors: Instance) -> None:
    with engine_of(of_flavors) as engine:
        (placement,) = engine.place(["w"]).placements
    assert placement.assignments[0].node == "free"


@pytest.mark.parametrize("with_room", FLAVORS)
def test_groups_that_belong_into_one_rack_are_put_where_their_flavor_has_quota(with_room: str) -> None:
    """Each flavor is a rack of its own."""
    allowances = tuple(
        FlavorAllowance(flavor=name, quota=Quota(gpu_milli=3000 * (name == with_room))) for name in FLAVORS
    )
    flavors = tuple(Flavor(id=name, node_selector={"pool": name}) for name in FLAVORS)
    nodes = [node(name, labels={"pool": name}, domain=f"rack-{name}") for name in FLAVORS]
    groups = (Group(id="lead"), Group(id="work", workers=2))
    tree = job("w", queue="q", options=(option(groups=groups, splits=(Split(level="rack", domains=1),), workers=1),))
    round_ = instance(
        nodes,
        [tree],
        domains=[Domain(id=f"rack-{name}") for name in FLAVORS],
        policy=Policy(queues=(Queue(id="q", flavors=allowances),), flavors=flavors),
    )
    (placement,) = solve(round_, method="stranding").placements
    assert {one.node for one in placement.assignments} == {with_room}
