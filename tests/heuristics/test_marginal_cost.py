"""The score by marginal cost is what a placement adds to the cost level, interference aside."""

import numpy as np
import pytest

from placeopt.generators import generate
from placeopt.heuristics import Candidates, greedy, order_jobs, score_named
from placeopt.heuristics.greedy import places_on_node
from placeopt.heuristics.search import construct
from placeopt.model import Weights
from placeopt.problem import Move, Problem, State, compile_problem
from placeopt.terms.objective import cost, cost_delta, value, weighted_costs

WITHOUT_INTERFERENCE = Weights(communication=600, interference=0, fragmentation=400)


def compiled(spec: str, seed: int, *, jobs: int = 60, nodes: int = 24) -> Problem:
    """Return a round whose costs are communication and fragmentation."""
    of = generate(spec, jobs=jobs, nodes=nodes, gpus=8, seed=seed)
    return compile_problem(
        of.model_copy(update={"policy": of.policy.model_copy(update={"weights": WITHOUT_INTERFERENCE})})
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spec", ["uniform", "varied", "gangs", "cubemesh", "fractions"])
def test_score_is_what_a_placement_adds(spec: str, seed: int) -> None:
    """Of every job of one bundle on every node, in a cluster that fills up meanwhile; the GPUs are those it picks."""
    problem = compiled(spec, seed)
    state, weighted = State(problem), weighted_costs(problem)
    candidates = Candidates(state, score_named("marginal_cost", problem))
    compared = 0
    for job in order_jobs(problem, "fcfs").tolist():
        for option in problem.options_of(job):
            if problem.options.bundles[option] != 1 or problem.class_communication[problem.job_class[job]].edges:
                continue
            scores = candidates.scores(option)
            for node in np.flatnonzero(np.isfinite(scores)).tolist():
                placement = next(places_on_node(candidates, option, node))
                assert scores[node] == cost_delta(state, Move(job, placement), weighted)
                compared += 1
            if np.isfinite(scores).any():
                node = int(scores.argmin())
                state.apply(Move(job, next(places_on_node(candidates, option, node))))
                candidates.changed(node)
    assert compared > 100


def test_opened_domains_count_as_filled() -> None:
    """Four jobs of a GPU on idle nodes of four: by marginal cost they open none, as if filled they fill one."""
    problem = compiled("uniform", 0)
    idle = np.flatnonzero(np.bincount(problem.gpu_node[State(problem).gpu_jobs == 0], minlength=problem.num_nodes) == 8)
    state = State(problem)
    single = next(
        o for o in range(len(problem.options)) if problem.options.gpus[o] == 1 and problem.options.milli[o] == 1000
    )
    marginal, filled = (Candidates(state, score_named(name, problem)) for name in ("marginal_cost", "filled_cost"))
    assert (filled.scores(single)[idle] < marginal.scores(single)[idle]).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_made_anew_costs_less_where_all_jobs_fit(seed: int) -> None:
    """300 jobs on 300 nodes: at equal value, with nodes ranked as if opened domains fill up."""
    problem = compile_problem(generate("uniform", jobs=300, nodes=300, gpus=4, seed=20 + seed))
    weighted = weighted_costs(problem)
    first = greedy(problem, order_jobs(problem, problem.policy.order)).allocation
    anew = construct(problem, weighted, ranking="filled_cost").allocation
    assert value(problem, anew) == value(problem, first)
    assert cost(problem, anew, weighted) < 0.95 * cost(problem, first, weighted)
