"""A round whose time is over while it is compiled: a lawful plan that places nothing, not an overrun (issue 16, A3)."""

import time
from unittest import mock

import pytest

from placeopt import BadInput, Engine, Unsupported, audit, solve, violations
from placeopt.build import instance, job, machine, running
from placeopt.errors import OutOfTime
from placeopt.linear import ModelBuilder
from placeopt.model import Communication, Instance, Link, Policy
from placeopt.problem import compile_problem
from placeopt.solving.api import DISTANCES_S
from placeopt.terms.linearized_costs import CostPrices


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time for distances where the limit is over, not even for a ring of four."""
    monkeypatch.setattr("placeopt.solving.api.DISTANCES_S", 0.0)


RING = tuple(Link(gpus=(i, (i + 1) % 4), weight=1) for i in range(4))


def ring_round() -> Instance:
    """A ring of 4 GPUs; one job runs, one of value 5 waits."""
    a, b = job("a", gpus=1), job("b", gpus=2, value=5, communication=Communication(weight=1))
    return instance(1, [a, b], machines=[machine(links=RING)], running=[running(a, [("n0", [0])])])


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("deterministic", [False, True])
def test_issue16_a3_no_time_for_distances_leaves_everything_where_it_is(deterministic: bool) -> None:
    """Issue 16, A3: the plan is for the waiting jobs, states no cost that it could not know, and passes both judges."""
    round_ = ring_round()
    plan = solve(round_, time_limit_s=1e-9, deterministic=deterministic)
    assert plan.asked == ("b",)
    assert [(one.job, one.reason) for one in plan.unplaced] == [("b", "not_reached")]
    assert (plan.status, plan.limit, plan.costs) == ("feasible", "time", {})
    assert (plan.levels[0].objective, plan.levels[0].bound) == (0, 5)
    assert [(stage.name, stage.outcome) for stage in plan.stages] == [("compile", "skipped")]
    assert (plan.seconds.total is None) == deterministic
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []


@pytest.mark.usefixtures("hurried")
def test_issue16_a3_a_machine_without_links_is_compiled_whatever_the_time() -> None:
    """A tree costs no more than the file, so greedy's first plan comes as before."""
    plan = solve(instance(1, [job("a")]), time_limit_s=1e-9)
    assert plan.asked is None


def test_issue16_a3_machines_of_common_size_are_compiled_whatever_the_time() -> None:
    """Distances get a fifth of a second in any case, a hundred times what machines of today take."""
    before = time.monotonic()
    with mock.patch("placeopt.solving.api.compile_problem", wraps=compile_problem) as compiled:
        solve(ring_round(), time_limit_s=1e-9)
    assert compiled.call_args.kwargs["deadline"] >= before + DISTANCES_S


@pytest.mark.usefixtures("hurried")
def test_issue16_a3_the_engine_goes_on_after_it() -> None:
    with Engine() as engine:
        assert engine.solve(ring_round(), time_limit_s=1e-9).asked == ("b",)
        assert engine.solve(ring_round(), time_limit_s=20).status == "optimal"


@pytest.mark.usefixtures("hurried")
def test_issue16_a3_nothing_to_win_is_proven_without_distances() -> None:
    """Nobody waits and no cost counts: the empty plan is optimal, and the audit agrees."""
    a = job("a", gpus=1)
    policy = Policy(weights={"communication": 0, "fragmentation": 0, "interference": 0, "resource": 0})
    round_ = instance(1, [a], machines=[machine(links=RING)], running=[running(a, [("n0", [0])])], policy=policy)
    plan = solve(round_, time_limit_s=1e-9)
    assert (plan.status, plan.limit, plan.gap) == ("optimal", "none", 0.0)
    assert audit(round_, plan) == []


@pytest.mark.usefixtures("hurried")
def test_issue16_a3_what_stands_is_listed_here_too() -> None:
    """A running job on a node that is not listed stands; the plan without time says so as any other does."""
    a, b = job("a", gpus=1), job("b", gpus=1)
    held = [running(a, [("gone", [0])])]
    round_ = instance(1, [a, b], machines=[machine(links=RING)], running=held)
    plan, timely = solve(round_, time_limit_s=1e-9), solve(round_, time_limit_s=20)
    assert plan.asked == ("b",)
    assert plan.standing
    assert plan.standing == timely.standing
    assert violations(round_, plan) == []


@pytest.mark.usefixtures("hurried")
def test_running_jobs_that_break_a_rule_are_bad_input_here_too() -> None:
    a, b = job("a", gpus=1), job("b", gpus=1)
    held = [running(a, [("n0", [0])]), running(b, [("n0", [0])])]
    round_ = instance(1, [a, b], machines=[machine(links=RING)], running=held)
    with pytest.raises(BadInput, match="running placements"):
        solve(round_, time_limit_s=1e-9)


def test_issue16_a3_compile_checks_the_deadline() -> None:
    with pytest.raises(OutOfTime):
        compile_problem(ring_round(), deadline=0.0)


def test_issue16_a3_a_model_too_large_is_not_built_to_its_end() -> None:
    """Issue 16, A3: 5 million columns were built for 4 s and then found too many; now the limit ends it."""
    builder = ModelBuilder(most_variables=10)
    builder.add_variables(0, 1, count=10)
    assert not builder.is_full
    with pytest.raises(Unsupported, match="at least 11 columns: too large"):
        builder.add_variables(0, 1)
    assert (builder.is_full, builder.num_variables) == (True, 10)


def test_issue16_a3_pairs_are_counted_before_they_are_written() -> None:
    """Issue 16, A3: half a million pairs of GPUs a machine are refused at the first machine, not after the tenth."""
    builder = ModelBuilder(most_variables=30)
    x = builder.add_variables(0, 1, count=8)
    prices, one = CostPrices(builder), x[:4].repeat(4)
    prices.add_both(one, one, one)
    with pytest.raises(Unsupported, match="at least 40 columns"):
        prices.add_both(one, one, one)
    assert builder.is_full


def test_issue16_a3_one_table_of_paths_for_machines_alike() -> None:
    """Issue 16, A3: flows look at a table and its usable GPUs once, however many machine types and nodes share both."""
    from placeopt.formulations.cost_relaxation import node_classes

    machines = [machine(f"m{i}", links=RING) for i in range(3)]
    nodes = [node.model_copy(update={"machine": f"m{i}"}) for i, node in enumerate(instance(3).cluster.nodes)]
    problem = compile_problem(instance(nodes, [job("a")], machines=machines))
    from placeopt.problem import State

    asked: list[int] = []
    with mock.patch.object(node_classes, "LeastPaths", wraps=node_classes.LeastPaths) as made:
        node_classes.make_node_classes(State(problem), lambda: asked.append(1))
    assert (made.call_count, len(asked)) == (1, 1)
