"""Utility by hand: the SC'17 artifact's values on a Minsky, eq. 2 as best over actual, and exact thresholds."""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

from helpers.plans import plan_for
from placeopt import solve
from placeopt.build import instance, job, machine, running
from placeopt.check import violations
from placeopt.model import Communication, Gpu, Job, Machine, Part, Policy, Postpone, Slowdown, Weights
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.problem.growth import grown_paths
from placeopt.terms.costs.utility import _sc17, longest_path_for, utility, utility_at
from placeopt.terms.rules import fits
from placeopt.terms.rules.minimal_utility import withdrawn

NEAR = ((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0))
TRAFFIC = Communication(weight=1)
EQUAL = Weights(communication=0, interference=0, fragmentation=0)
"""Thirds: the paper's setting."""


def minsky() -> Machine:
    """Two sockets of two GPUs, 1 apart inside and 20 across, as the artifact states them."""
    sockets = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))
    gpus = [Gpu(model="P100", memory_mib=16_384, part=f"s{i // 2}") for i in range(4)]
    return machine(gpus=gpus, parts=sockets, gpu_distance_matrix=NEAR)


def problem_of(jobs: Sequence[Job], *, nodes: int = 1, form: str = "sc17", rule: str = "utility") -> Problem:
    """Jobs of profile ``calm`` lose a third beside ``loud`` in a socket."""
    policy = Policy.model_validate(
        {"postpone": {"rule": rule, "utility": form}, "weights": EQUAL.model_dump(), "share_mode": "exclusive"}
    )
    loud = Slowdown(profile="calm", beside="loud", socket_thousandths=333)
    return compile_problem(instance(nodes, jobs, machines=[minsky()], policy=policy, slowdowns=(loud,)))


def pair(name: str = "pair", **fields: object) -> Job:
    """Two GPUs that talk."""
    return job(name, gpus=2, communication=TRAFFIC, profile="calm", **fields)


def at(problem: Problem, job_: int, *gpus: int) -> Placement:
    """All on one node."""
    return Placement(problem.options_of(job_)[0], (int(problem.gpu_node[gpus[0]]),), gpus)


@pytest.mark.parametrize(("gpus", "expected"), [((0, 1), 1000), ((2, 3), 1000), ((0, 2), 253), ((1, 3), 253)])
def test_two_gpus_of_the_artifact(gpus: tuple[int, int], expected: int) -> None:
    """Across: t = 19/40 = 0.475, U = 0.2 / (0.6892 + 0.1) = 0.2534; in a socket t = 0.01, U = 0.2 / 0.2 = 1."""
    problem = problem_of([pair()])
    assert utility_at(State(problem), 0, at(problem, 0, *gpus)) == expected


def test_three_gpus_always_span_both_sockets() -> None:
    """The artifact's m(3) = 41 = 1 + 20 + 20 is the best there is: utility 1 wherever they are."""
    problem = problem_of([job("three", gpus=3, communication=TRAFFIC)])
    assert int(problem.best_path[0]) == 41
    assert utility_at(State(problem), 0, at(problem, 0, 1, 2, 3)) == 1000


def test_a_machine_among_others_is_as_it_is_alone() -> None:
    """Distances across the network do not reach into t: 0.253 in a cluster of five, too."""
    problem = problem_of([pair()], nodes=5)
    assert utility_at(State(problem), 0, at(problem, 0, 4, 6)) == 253


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        # I = 0.75: U = 0.2 / (0.1 + 0.866) = 0.207; one harmless job on the machine halves I: 0.2 / (0.1 + 0.612)
        ([("loud", 1)], 207),
        ([("loud", 1), ("calm", 2)], 280),
        ([("loud", 1), ("calm", 2), ("calm", 3)], 333),
        ([("calm", 1)], 1000),
        ([("loud", 2)], 1000),  # in the other socket
    ],
)
def test_a_neighbour_in_the_socket(others: list[tuple[str, int]], expected: int) -> None:
    """A third slower beside a loud one: 0.18 .. 0.33 by how many other jobs the machine has, as the data page says."""
    problem = problem_of(
        [job("one", profile="calm"), *(job(f"o{i}", profile=name) for i, (name, _) in enumerate(others))]
    )
    state = State(problem)
    for i, (_, gpu) in enumerate(others):
        state.apply(Move(1 + i, at(problem, 1 + i, gpu)))
    assert utility_at(state, 0, at(problem, 0, 0)) == expected


def test_across_and_slowed() -> None:
    """0.2 / (sqrt(0.475) + sqrt(0.75 / 1)) = 0.1286; the data page has 0.12 for a lesser slowdown."""
    problem = problem_of([pair(), job("loud", profile="loud")])
    state = State(problem)
    state.apply(Move(1, at(problem, 1, 1)))
    assert utility_at(state, 0, at(problem, 0, 0, 2)) == 128


def test_the_sum_of_eq_2() -> None:
    """Across: (1/20 + 1 + 1) / 3 = 0.683; a third slower as well: (1/20 + 1000/1333 + 1) / 3 = 0.6000."""
    problem = problem_of([pair(), job("loud", profile="loud")], form="sum")
    state = State(problem)
    assert utility_at(state, 0, at(problem, 0, 0, 2)) == 683
    state.apply(Move(1, at(problem, 1, 1)))
    assert utility_at(state, 0, at(problem, 0, 0, 2)) == 600
    assert utility_at(state, 0, at(problem, 0, 2, 3)) == 1000


def test_fragmentation_of_the_sum_prefers_the_smaller_socket() -> None:
    """Sockets of 1 and 3 GPUs: one GPU of the larger leaves 1/1 + 2/3 free, of the smaller 0 + 3/3: 1 / (5/3) = 0.6."""
    parts = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))
    gpus = [Gpu(model="A", memory_mib=1, part="s0" if i == 0 else "s1") for i in range(4)]
    policy = Policy(postpone=Postpone(utility="sum"), weights=EQUAL)
    problem = compile_problem(instance(1, [job("one")], machines=[machine(gpus=gpus, parts=parts)], policy=policy))
    assert utility_at(State(problem), 0, at(problem, 0, 0)) == 1000
    assert utility_at(State(problem), 0, at(problem, 0, 2)) == 866  # (1 + 1 + 0.6) / 3


def test_without_traffic_paths_do_not_matter() -> None:
    problem = problem_of([job("quiet", gpus=2)])
    assert utility_at(State(problem), 0, at(problem, 0, 0, 2)) == 1000


def test_workers_on_several_nodes_are_compared_with_the_nearest_two_nodes() -> None:
    """Six GPUs on machines of four: 4 + 2, (1 + 1 + 4 x 20) + 1 + 8 x least distance across nodes."""
    problem = problem_of([job("gang", workers=3, gpus=2, communication=TRAFFIC)], nodes=2)
    across = problem.topology.distances(np.array([0]), np.array([4]))[0]
    assert int(problem.best_path[0]) == 82 + 1 + 8 * across
    state = State(problem)
    assert utility_at(state, 0, Placement(0, (0, 0, 1), (0, 1, 2, 3, 4, 5))) == 1000
    assert utility_at(state, 0, Placement(0, (0, 0, 1), (0, 1, 2, 3, 4, 6))) < 1000


def test_on_a_lone_node_there_is_no_way_across() -> None:
    """Two workers on two GPUs: best is what a second, idle node would leave best, and not a path of 0 (regression)."""
    for nodes in (1, 2):
        problem = problem_of([job("two", workers=2, communication=TRAFFIC)], nodes=nodes)
        assert int(problem.best_path[0]) == 1
        assert utility_at(State(problem), 0, Placement(0, (0, 0), (0, 1))) == 1000


def test_what_fits_nowhere_has_no_best_path() -> None:
    """Two workers of more GPUs than a node has, on one node and on two."""
    for nodes in (1, 2):
        problem = problem_of([job("huge", workers=2, gpus=9, communication=TRAFFIC)], nodes=nodes)
        assert problem.best_path.tolist() == [0]


def test_roots_are_compared_exactly() -> None:
    """Against roots of 40 digits; and where the roots are rational the threshold is met, not missed by an ulp."""
    for pair_ in np.random.default_rng(0).integers(10, 2000, size=(200, 2)).tolist():
        t, i = (Fraction(number, 997) for number in pair_)
        roots = sum(Fraction(isqrt(x.numerator * x.denominator * 10**80), x.denominator * 10**40) for x in (t, i))
        assert _sc17(t, i) == min(1000, int(200 / roots))
    assert _sc17(Fraction(1, 25), Fraction(1, 25)) == 500
    assert _sc17(Fraction(1, 25) + Fraction(1, 10**30), Fraction(1, 25)) == 499


def test_the_longest_path_is_the_last_that_reaches_the_minimum() -> None:
    """t <= (200/500 - 0.1)^2 = 0.09, so at most 0.09 x 40 = 3.6 more than the best path of 1."""
    problem = problem_of([pair(utility_min_thousandths=500)])
    assert longest_path_for(problem, 0, 500) == 4
    assert longest_path_for(problem, 0, 1001) is None


def test_growing_is_the_best_set_where_distances_form_levels() -> None:
    assert grown_paths(np.array(NEAR), 4).tolist() == [0, 0, 1, 41, 82]


def test_a_job_below_its_minimum_waits_with_a_reason() -> None:
    """One GPU of each socket is busy: a pair would run across at 253 of the 300 it asks for."""
    a, b = job("a"), job("b")
    round_ = instance(
        1,
        [a, b, pair(utility_min_thousandths=300)],
        machines=[minsky()],
        running=[running(a, [("n0", [0])]), running(b, [("n0", [2])])],
        policy=Policy(postpone=Postpone(rule="utility"), share_mode="exclusive"),
    )
    plan = solve(round_, time_limit_s=5)
    (waits,) = plan.unplaced
    assert plan.status == "optimal"
    assert (waits.job, waits.reason) == ("pair", "postponed")
    assert "253" in waits.detail
    assert "300" in waits.detail


def test_the_referee_judges_the_plan_as_a_whole() -> None:
    """A loud neighbour that starts in the same round takes the calm one below its minimum; on its own it may stay."""
    calm = job("calm", profile="calm", utility_min_thousandths=300)
    round_ = instance(
        1,
        [calm, job("loud", profile="loud")],
        machines=[minsky()],
        policy=Policy(postpone=Postpone(rule="utility"), share_mode="exclusive"),
        slowdowns=(Slowdown(profile="calm", beside="loud", socket_thousandths=333),),
    )
    beside = plan_for(round_, {"calm": [("n0", [0])], "loud": [("n0", [1])]})
    assert [v.rule for v in violations(round_, beside)] == ["minimal_utility"]
    apart = plan_for(round_, {"calm": [("n0", [0])], "loud": [("n0", [2])]})
    assert violations(round_, apart) == []
    problem = compile_problem(round_)
    state = State(problem)
    state.apply(Move(0, at(problem, 0, 0)))
    assert not fits(state, 1, at(problem, 1, 1))
    assert fits(state, 1, at(problem, 1, 2))
    both = (at(problem, 0, 0), at(problem, 1, 1))
    assert withdrawn(problem, both) == (None, both[1])
    assert solve(round_, time_limit_s=5).levels[0].objective == 2


def test_what_runs_is_not_asked() -> None:
    """A running pair across sockets stays; moved it would be judged."""
    split = pair(utility_min_thousandths=300)
    round_ = instance(
        1,
        [split],
        machines=[minsky()],
        running=[running(split, [("n0", [0, 2])])],
        policy=Policy(postpone=Postpone(rule="utility"), share_mode="exclusive"),
    )
    assert solve(round_, time_limit_s=5).placements[0].job == "pair"
    problem = compile_problem(round_)
    assert utility(State(problem), 0) == 253
