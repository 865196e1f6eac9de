"""The two levels: net value, and the weighted sum of the costs in integers."""

import pytest

from placeopt import Unsupported
from placeopt.build import instance, job, machine, option, running
from placeopt.model import Changes, Communication, Fragmentation, Policy, Weights
from placeopt.problem import Placement, Problem, compile_problem
from placeopt.terms import MAX_COST, cost, trivial_gpu_milli_bound, trivial_value_bound, value, weighted_costs
from placeopt.terms.costs import COSTS, costs_of


def weights(**parts: int) -> Weights:
    """The weights named, 0 for the others."""
    return Weights(**{**dict.fromkeys(Weights(), 0), **parts})


def three_costs() -> Problem:
    """One job of two GPUs and cost 700 on two nodes of four GPUs."""
    policy = Policy(
        weights=weights(communication=500, fragmentation=300, resource=200),
        fragmentation=Fragmentation(level_weights={"node": 1}),
    )
    pair = job("a", gpus=2, communication=Communication(weight=1), cost_milli=700)
    return compile_problem(instance(2, [pair], policy=policy))


def test_weights_by_hand() -> None:
    """
    Worst cases: one pair over the longest path, 1 + 100 + 100 + 1 = 202; 3 + 3 free GPUs; 700.

    L is the smallest power of ten with a x L / (1000 x worst) >= 1000 for all: 200 x L >= 1e6 x 700 asks for 3.5e6, so
    1e7. W = 500e7 / (1000 x 202) = 24752.5 -> 24752; 300e7 / 6000 = 500000; 200e7 / 700000 = 2857.1 -> 2857.
    """
    problem = three_costs()
    found = {w.cost.name: (w.weight, w.worst) for w in weighted_costs(problem)}
    assert found == {"communication": (24_752, 202), "fragmentation": (500_000, 6), "resource": (2857, 700)}
    here = (Placement(0, (0,), (0, 1)),)
    assert cost(problem, here, weighted_costs(problem)) == 24_752 * 2 + 500_000 * 2 + 2857 * 700


def test_costs_that_cannot_cost_anything_are_left_out() -> None:
    """A worst case of 0 cannot be divided by, and needs no columns."""
    assert [w.cost.name for w in weighted_costs(compile_problem(instance(1, [job("a")])))] == ["fragmentation"]
    assert weighted_costs(compile_problem(instance(1, [job("a")], policy=Policy(weights=weights())))) == ()


def test_a_huge_worst_case_stays_exact() -> None:
    """The sum of W x worst stays below 2^53, and no weight is rounded to nothing."""
    policy = Policy(
        weights=weights(fragmentation=1, resource=999), fragmentation=Fragmentation(level_weights={"node": 1_000_000})
    )
    dear = [job(f"{i}", cost_milli=10**9) for i in range(50)]
    found = weighted_costs(compile_problem(instance(1, dear, policy=policy)))
    assert sum(w.weight * w.worst for w in found) < MAX_COST
    assert all(w.weight >= 1 for w in found)


def test_a_cost_that_cannot_be_summed_exactly_is_refused() -> None:
    """5e9 pairs of weight 1e6 over a path of 202: 1e18; a little more, and 64 bits wrap before anybody notices."""
    gang = job("a", workers=100_000, communication=Communication(weight=1_000_000))
    with pytest.raises(Unsupported, match=r"'communication' can reach 1009989900000000000 weighted path"):
        weighted_costs(compile_problem(instance(2, [gang])))


def test_value_counts_running_jobs_and_the_option_taken() -> None:
    """Level 1 is the value of what runs after the round."""
    here = job("here", value=5)
    elastic = job("more", options=(option(workers=2, workers_min=1, value=7, value_per_worker=4),))
    problem = compile_problem(instance(1, [here, elastic], running=[running(here, [("n0", [0])])]))
    one, two = problem.options_of(1)
    assert value(problem, (problem.running[0], None)) == 5
    assert value(problem, (problem.running[0], Placement(one, (0,), (1,)))) == 5 + 3
    assert value(problem, (problem.running[0], Placement(two, (0, 0), (1, 2)))) == 5 + 7
    assert trivial_value_bound(problem) == 5 + 7


def test_the_trivial_bounds_by_hand() -> None:
    """All jobs that fit alone; GPU share that there is where shares bind, and that is asked for elsewhere."""
    jobs = [job("a", gpus=4, value=4), job("b", gpus=3, value=3), job("big", gpus=5, value=9)]
    problem = compile_problem(instance(1, jobs, machines=[machine(gpus=4)]))
    assert trivial_value_bound(problem) == 7
    assert trivial_gpu_milli_bound(problem) == 4000
    shared = Policy(share_mode="overcommit", jobs_per_gpu_max=3)
    assert trivial_gpu_milli_bound(compile_problem(problem.instance, shared)) == 12_000


def test_the_trivial_bound_of_a_running_job_pays_for_its_move() -> None:
    """It runs in the option worth 5; a move into the one worth 7 costs 1, or more than it brings."""
    either = job("a", options=(option("small", value=5), option("large", value=7)))
    for price, bound in ((1, 6), (3, 5)):
        policy = Policy(changes=Changes(moves_max=1, move_price=price))
        held = [running(either, [("n0", [0])], option="small", movable=True)]
        assert trivial_value_bound(compile_problem(instance(1, [either], running=held, policy=policy))) == bound


def test_every_cost_has_a_weight_by_its_name() -> None:
    """What counts unless a policy says otherwise, and that all can be 0."""
    names = {cost.name for cost in COSTS}
    assert {"communication", "interference", "fragmentation", "prefer", "relations"} == set(Weights()) < names
    assert not any(Weights(**dict.fromkeys(names, 0)).values())


@pytest.mark.parametrize("form", ["partial", "fgd"])
def test_a_policy_selects_one_form_of_each_cost(form: str) -> None:
    names = [cost.name for cost in costs_of(Policy(fragmentation=Fragmentation.model_validate({"form": form})))]
    assert names == ["communication", "interference", "fragmentation", "horus", "resource", "prefer", "relations"]
