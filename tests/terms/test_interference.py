"""Slowdown by co-runners in the three models, by hand."""

from typing import Any, Literal

import pytest

from helpers.relaxations import least_cost
from placeopt import Engine, Unsupported
from placeopt.build import instance, job, machine, running
from placeopt.explain import explain
from placeopt.formulations import add_counts
from placeopt.linear import ModelBuilder
from placeopt.model import Gpu, Part, Policy, Slowdown, SlowdownCurve, Weights
from placeopt.model import Interference as Choice
from placeopt.problem import Allocation, Move, Placement, Problem, State, compile_problem
from placeopt.terms.costs import HorusCost, Interference

TERM = Interference()
PARTS = (
    Part(id="s0", level="socket"),
    Part(id="w0", level="switch", parent="s0"),
    Part(id="s1", level="socket"),
)
GPUS = [Gpu(model="A", memory_mib=1, part=part) for part in ("w0", "w0", "s0", "s1")]
BESIDE_LOUD = Slowdown(
    profile="calm",
    beside="loud",
    gpu_thousandths=400,
    switch_thousandths=300,
    socket_thousandths=200,
    node_thousandths=100,
)


def round_of(
    model: Literal["pairwise", "worst", "curve"], *profiles: str, percent: int = 0, curve: Any = "rtx-2080"
) -> Problem:
    """Jobs of one or two GPUs on one machine: GPUs 0 and 1 under a switch of socket 0, 2 in it, 3 in socket 1."""
    policy = Policy(share_mode="overcommit", jobs_per_gpu_max=3, interference=Choice(model=model, curve=curve))
    jobs = [job(f"{i}", profile=name, gpu_utilisation_percent=percent) for i, name in enumerate(profiles)]
    return compile_problem(
        instance(2, jobs, machines=[machine(gpus=GPUS, parts=PARTS)], policy=policy, slowdowns=(BESIDE_LOUD,))
    )


def at(problem: Problem, *gpus: int) -> Allocation:
    """One GPU a job."""
    return tuple(
        Placement(problem.options_of(j)[0], (int(problem.gpu_node[gpu]),), (gpu,)) for j, gpu in enumerate(gpus)
    )


@pytest.mark.parametrize(("gpu", "excess"), [(0, 400), (1, 300), (2, 200), (3, 100), (4, 0)])
def test_a_pair_counts_at_the_closest_domain_that_it_shares(gpu: int, excess: int) -> None:
    """GPU, switch, socket, machine; nothing on another node. The loud one has no entry and is not slowed."""
    problem = round_of("pairwise", "calm", "loud")
    assert TERM.score(problem, at(problem, 0, gpu)) == excess


@pytest.mark.parametrize(("model", "excess", "worst"), [("pairwise", 300, 2 * 2 * 400), ("worst", 200, 2 * 400)])
def test_pairwise_adds_and_worst_takes_the_largest(model: Any, excess: int, worst: int) -> None:
    """
    Beside a loud job in its socket (200) and one in the other (100): 300 in all, 200 at worst.

    Worst case: two calm and two loud jobs, each calm one beside both loud ones on its GPU, or beside the worse of them.
    """
    problem = round_of(model, "calm", "loud", "loud")
    assert TERM.score(problem, at(problem, 0, 2, 3)) == excess
    assert TERM.worst(round_of(model, "calm", "calm", "loud", "loud")) == worst


# f = x^2 + 0.5 x + 0.1, so f(1) = 1.6
FITTED = SlowdownCurve(square_millionths=1_000_000, linear_millionths=500_000, constant_millionths=100_000)


@pytest.mark.parametrize(
    ("curve", "percent", "gpu", "excess"),
    [
        # Horus fig. 4, RTX 2080: f(1) = 1.16664 - 0.00302 + 0.00004 = 1.16366; 0.8 x 163.66 = 130.9 -> 131 each
        ("rtx-2080", 40, 0, 131),
        # f(1.5) = 1.16664 x 2.25 - 0.00302 x 1.5 + 0.00004 = 2.62045; alone: 0, however busy
        ("rtx-2080", 75, 0, 1620),
        ("rtx-2080", 75, 1, 0),
        (FITTED, 40, 0, 480),  # 0.6 x 0.8
        (FITTED, 75, 0, 2100),  # 2.25 + 0.75 + 0.1 = 3.1
    ],
)
def test_the_curve_is_a_line_up_to_full_use_and_the_quadratic_above(
    curve: Any, percent: int, gpu: int, excess: int
) -> None:
    """Two jobs of so many percent, one on GPU 0: thousandths of each. A fitted curve takes a published one's place."""
    problem = round_of("curve", "calm", "calm", percent=percent, curve=curve)
    assert TERM.score(problem, at(problem, 0, gpu)) == 2 * excess
    if (curve, percent) == ("rtx-2080", 75):
        assert TERM.worst(problem) == 2 * 4899  # three jobs of 75 % on a GPU: f(2.25) - 1 = 4.89936


def test_the_curve_costs_nothing_where_no_jobs_meet() -> None:
    """A term that cannot cost anything is left out of the cost level, rather than make it a bound."""
    policy = Policy(share_mode="exclusive", interference=Choice(model="curve"))
    problem = compile_problem(instance(1, [job("a", gpu_utilisation_percent=100)], policy=policy))
    assert TERM.worst(problem) == 0
    assert TERM.form(problem) == "exact"


@pytest.mark.parametrize(
    ("model", "together", "apart", "bound"),
    [("pairwise", 2 * 50 + 20, 2 * 400 + 20, 2 * 60), ("worst", 50 + 20, 400 + 20, 50 + 20)],
)
def test_a_closer_domain_may_disturb_less(
    model: Literal["pairwise", "worst"], together: int, apart: int, bound: int
) -> None:
    """
    One socket of two switches with a GPU each. Calm beside loud: 400 in a socket, 50 on a GPU; loud beside calm 10
    anywhere. One calm and two loud jobs, three a GPU: apart, the calm one suffers 400 at least; all
    on one GPU it suffers 2 x 50 (50 at worst), and each loud one 10. The linear form charges the least of both.
    """
    parts = (Part(id="s", level="socket"), *(Part(id=f"w{i}", level="switch", parent="s") for i in (0, 1)))
    gpus = [Gpu(model="A", memory_mib=1, part=part) for part in ("w0", "w1")]
    fields = ("gpu_thousandths", "switch_thousandths", "socket_thousandths", "node_thousandths")
    slowdowns = (
        Slowdown(profile="calm", beside="loud", **dict(zip(fields, (50, 300, 400, 500), strict=True))),
        Slowdown(profile="loud", beside="calm", **dict.fromkeys(fields, 10)),
    )
    policy = Policy(share_mode="overcommit", jobs_per_gpu_max=3, interference=Choice(model=model))
    jobs = [job(f"{i}", profile=name) for i, name in enumerate(("calm", "loud", "loud"))]
    kinds = [machine(gpus=gpus, parts=parts)]
    problem = compile_problem(instance(1, jobs, machines=kinds, policy=policy, slowdowns=slowdowns))
    assert [TERM.score(problem, at(problem, *gpus)) for gpus in ((0, 0, 0), (0, 1, 1))] == [together, apart]
    assert TERM.form(problem) == "bound"
    assert least_cost(problem, TERM)[0] == bound


@pytest.mark.parametrize("method", ["counts", "assignment", "auto"])
def test_a_third_job_may_join_two_that_share_a_gpu(method: str, engine: Engine) -> None:
    """
    Under the curve, the exact cost level once forbade it if no other job may join.

    GPU 0 is shared by two jobs that use nothing, GPU 1 is nearly full with one job: the third belongs on GPU 0.
    """
    weights = Weights(communication=0, interference=1000, fragmentation=0)
    policy = Policy(share_mode="overcommit", jobs_per_gpu_max=3, interference=Choice(model="curve"), weights=weights)
    jobs = [job("i0"), job("i1"), job("full", gpu_utilisation_percent=100), job("new", gpu_utilisation_percent=30)]
    runs = [running(one, [("n0", [gpu])]) for one, gpu in zip(jobs, (0, 0, 1), strict=False)]
    round_ = instance(1, jobs, machines=[machine(gpus=2)], policy=policy, running=runs)
    plan = engine.solve(round_, method=method, time_limit_s=20)
    assert [stage for stage in plan.stages if stage.outcome == "failed"] == []
    assert plan.status == "optimal"
    assert set(plan.placement_of("new").assignments[0].gpus) == {"0"}
    assert explain(round_, plan, "new").best.proven


def test_more_meetings_than_a_model_may_have_are_refused_before_they_are_made() -> None:
    """100 jobs on a node are 4,950 pairs, each a row of three entries; a model of 450 columns may have 9,000."""
    jobs = [job(f"{i}", profile="loud" if i else "calm") for i in range(100)]
    loud = Slowdown(profile="loud", beside="loud", node_thousandths=1)
    round_ = instance(1, jobs, machines=[machine(gpus=100)], slowdowns=(BESIDE_LOUD, loud))
    problem = compile_problem(round_)
    builder = ModelBuilder(most_variables=450)
    variables = add_counts(builder, State(problem), (TERM,))
    with pytest.raises(Unsupported, match="too large"):
        TERM.add_to(builder, variables)
    assert (builder.is_full, builder.num_variables) == (True, 400)


@pytest.mark.parametrize(("most", "form", "least"), [(2, "exact", 2 * 164), (3, "bound", 3 * 164)])
def test_under_the_curve_pairs_bound_what_more_jobs_suffer(most: int, form: str, least: int) -> None:
    """
    Jobs of 50 % on one GPU, as many as may share it: two of them fill it, and s(1) = 1.16366.

    Three suffer f(1.5) = 1.16664 x 2.25 - 0.00302 x 1.5 + 0.00004 = 2.62045 each, of which pairs account for 164.
    """
    policy = Policy(share_mode="overcommit", jobs_per_gpu_max=most, interference=Choice(model="curve"))
    jobs = [job(f"{i}", gpu_utilisation_percent=50) for i in range(most)]
    problem = compile_problem(instance(1, jobs, machines=[machine(gpus=1)], policy=policy))
    assert TERM.form(problem) == form
    assert least_cost(problem, TERM)[0] == least
    assert TERM.score(problem, at(problem, *[0] * most)) == (least if most == 2 else 3 * 1620)


@pytest.mark.parametrize("model", ["pairwise", "curve"])
def test_running_jobs_that_fill_a_gpu_beyond_the_rules_have_a_cost(model: Literal["pairwise", "curve"]) -> None:
    """
    Two jobs of 60 % run on a GPU that only one may hold; a table that ends where the rules do is too short.

    f(1.2) = 1.6799616 - 0.003624 + 0.00004 = 1.6763776.
    """
    policy = Policy(
        share_mode="exclusive",
        interference=Choice(model=model),
        weights=Weights(communication=0, interference=500, fragmentation=0, horus=500),
    )
    jobs = [job(f"j{i}", gpu_utilisation_percent=60) for i in range(2)]
    round_ = instance(1, jobs, policy=policy, running=[running(one, [("n0", [0])]) for one in jobs])
    problem = compile_problem(round_)
    held = State(problem).allocation()
    assert HorusCost().score(problem, held) == 838
    expected = 2 * 676 if model == "curve" else 0
    assert TERM.score(problem, held) == expected
    alone = compile_problem(round_.model_copy(update={"running": ()}))  # as `explain` has it: states are made by hand
    beside = State(alone)
    beside.apply(Move(0, held[0]))
    assert HorusCost().delta(beside, Move(1, held[1])) > 0
    assert TERM.delta(beside, Move(1, held[1])) == expected
