"""What ``counts`` folds, what it must keep apart, and the way back from columns to placements."""

from typing import Any

import numpy as np
import pytest

from helpers.differential import solve
from placeopt.build import instance, job, machine, option, running
from placeopt.formulations import add_assignment, add_counts, decode, encode
from placeopt.linear import ModelBuilder
from placeopt.model import Communication, Gpu, Instance, Link, Part, Policy, Split
from placeopt.problem import Placement, State, compile_problem
from placeopt.terms.costs import COSTS
from placeopt.terms import value_expression
from placeopt.terms import Cost
from placeopt.terms import Variables

SOCKETS = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))
TWO_BY_TWO = [Gpu(model="A", memory_mib=16_384, part=part) for part in ("s0", "s0", "s1", "s1")]


def cost(name: str) -> Cost:
    """The cost of that name."""
    return next(term for term in COSTS if term.name == name)


def counted(instance: Instance, *costs: str) -> Variables:
    """Columns of ``counts`` for a round."""
    state = State(compile_problem(instance))
    return add_counts(ModelBuilder(), state, [cost(name) for name in costs])


def test_alike_jobs_and_alike_gpus_fold() -> None:
    """A hundred jobs of a GPU on two nodes of four: one start, two bundles, two grants."""
    variables = counted(instance(2, [job(f"{i}") for i in range(100)]), "fragmentation")
    assert [len(jobs) for jobs in variables.unit_jobs] == [100]
    assert variables.cell_gpus == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert (len(variables.start), len(variables.bundle), len(variables.grant)) == (1, 2, 2)


@pytest.mark.parametrize(
    ("demand", "policy"),
    [
        ({"workers": 2}, Policy()),  # two bundles: whose is which?
        ({"splits": (Split(level="node", domains=1),)}, Policy()),  # counts the domains of one job
        ({"gpus": 2}, Policy(share_mode="overcommit", jobs_per_gpu_max=2)),  # both may hold two of the same three GPUs
    ],
)
def test_jobs_that_cannot_be_unfolded_stay_apart(demand: dict[str, Any], policy: Policy) -> None:
    """Folding them would let a job hold a GPU twice, or leave bundles without owner."""
    variables = counted(instance(1, [job("a", **demand), job("b", **demand)], policy=policy))
    assert [len(members) for members in variables.unit_jobs] == [1, 1]


def test_jobs_with_traffic_stay_apart_only_where_traffic_costs() -> None:
    """Its cost needs columns of each job; the value level does not."""
    pairs = [job(f"{i}", gpus=2, communication=Communication(weight=1)) for i in range(3)]
    assert len(counted(instance(1, pairs)).unit_jobs) == 1
    assert len(counted(instance(1, pairs), "communication").unit_jobs) == 3


def test_gpus_stay_apart_where_jobs_may_share_them() -> None:
    """A fraction takes part of one GPU; on a GPU that is too small for it nobody can meet."""
    gpus = [Gpu(model="A", memory_mib=8000)] * 2 + [Gpu(model="A", memory_mib=1000)] * 2
    jobs = [job("half", gpu_milli=500, gpu_memory_mib=4000), job("whole")]
    variables = counted(instance(1, jobs, machines=[machine(gpus=gpus)]))
    assert variables.cell_gpus == ((0,), (1,), (2, 3))


def test_a_gpu_that_a_running_job_holds_stays_apart() -> None:
    """What is left of it differs from what is left of an idle one."""
    here = job("here")
    variables = counted(instance(1, [here, job("a")], running=[running(here, [("n0", [1])])]))
    assert variables.cell_gpus == ((0, 2, 3), (1,))


def test_costs_limit_how_far_gpus_fold() -> None:
    """Sockets for fragmentation by socket; single GPUs on a ring for traffic."""
    pair = job("a", gpus=2, communication=Communication(weight=1))
    sockets = instance(1, [pair], machines=[machine(gpus=TWO_BY_TWO, parts=SOCKETS)])
    assert counted(sockets).cell_gpus == ((0, 1, 2, 3),)
    assert counted(sockets, "fragmentation").cell_gpus == ((0, 1), (2, 3))
    assert counted(sockets, "communication").cell_gpus == ((0, 1), (2, 3))
    ring = machine(gpus=4, links=tuple(Link(gpus=(g, (g + 1) % 4)) for g in range(4)))
    assert counted(instance(1, [pair], machines=[ring]), "communication").cell_gpus == ((0,), (1,), (2,), (3,))


def test_no_columns_where_nothing_fits() -> None:
    """An option whose bundles do not all find room has no start."""
    options = (option("here", gpus=2), option("too-many", workers=5, gpus=2), option("other", gpu_models=("B",)))
    variables = counted(instance(2, [job("a", options=options)]))
    assert [variables.problem.options.name[o] for o in variables.start_option] == ["here"]


@pytest.mark.parametrize("add", [add_assignment, add_counts])
def test_encode_and_decode_are_each_others_inverse(add) -> None:  # type: ignore[no-untyped-def]
    """A hint that says something else than the plan it was made of would be worse than none."""
    options = (option("gang", workers=2, gpus=2), option("one", gpus=1, gpu_milli=500))
    problem = compile_problem(instance(2, [job("a", options=options), job("b", options=options), job("c", gpus=0)]))
    builder, state = ModelBuilder(), State(problem)
    variables = add(builder, state)
    allocation = (Placement(0, (0, 1), (1, 2, 4, 7)), Placement(1, (0,), (0,)), Placement(2, (1,), ()))
    values = encode(variables, allocation, builder)
    assert decode(variables, values) == allocation
    assert builder.build().is_feasible(values)


def test_decode_refuses_values_that_do_not_add_up() -> None:
    """Rows forbid them, so it is a solver's fault and must not become a plan."""
    variables = counted(instance(1, [job("a"), job("b")]))
    columns = int(max(variables.start.max(), variables.bundle.max(), variables.grant.max())) + 1
    for start, bundle, grant in ((1, 0, 0), (1, 1, 0), (2, 1, 1), (1, 1, 2)):
        values = np.zeros(columns, dtype=np.int64)
        values[variables.start], values[variables.bundle], values[variables.grant] = start, bundle, grant
        with pytest.raises(ValueError, match=r"GPUs granted|bundles for"):
            decode(variables, values)


def test_two_gangs_of_two_on_minsky_find_a_socket_each() -> None:
    """The first example of every reader: two pairs, two sockets, nobody across (SC'17 fig. 1)."""
    pairs = [job(f"{i}", gpus=2, communication=Communication(weight=4)) for i in range(2)]
    state = State(compile_problem(instance(1, pairs, machines=[machine(gpus=TWO_BY_TWO, parts=SOCKETS)])))
    for formulation in (lambda b: add_assignment(b, state), lambda b: add_counts(b, state, [cost("communication")])):
        builder = ModelBuilder()
        variables = formulation(builder)
        columns, coefficients, _ = value_expression(variables)
        builder.add_row(columns, coefficients, 2, 2)
        columns, coefficients, constant = cost("communication").add_to(builder, variables)
        builder.set_objective(columns, coefficients, "min", constant)
        solution = solve("highs", builder.build())
        assert solution.objective == 2 * 4 * 2
        assert solution.values is not None
        held = {placement.gpus for placement in decode(variables, solution.values) if placement}
        assert held == {(0, 1), (2, 3)}


def test_utilisation_counts_the_jobs_of_a_folded_unit() -> None:
    """Two alike jobs are one grant; the GPU that both hold has twice the utilisation (round 5087 was infeasible)."""
    policy = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
    pair = [job(f"{i}", gpu_utilisation_percent=30) for i in range(2)]
    builder = ModelBuilder()
    variables = add_counts(builder, State(compile_problem(instance(1, pair, policy=policy))), [cost("horus")])
    assert [len(jobs) for jobs in variables.unit_jobs] == [2]
    levels, digits = variables.utilisation(builder, 0)
    assert levels.tolist() == [0, 30, 60]
    assert len(digits) == 2
