"""Preferred levels: by hand, and deltas against scores on placements that no rule has seen."""

from hypothesis import given

from placeopt import Instance, build
from placeopt.model import Domain, Group, Job, Option
from placeopt.problem import Move, Placement, State, compile_problem
from placeopt.terms.costs import COSTS
from strategies import Choice, choices, tree_rounds

PREFER = next(cost for cost in COSTS if cost.name == "prefer")


def test_the_index_of_the_first_level_that_holds_the_group() -> None:
    """On one node 0, in one rack 1, else 2; of the inner group alone a rack is wanted, 1 where that fails."""
    inner = Group(id="b", prefer=("rack",), groups=(Group(id="c"), Group(id="d")))
    job = Job(id="j", options=(Option(groups=(Group(id="a"), inner), prefer=("node", "rack")),))
    nodes = [build.node(f"n{i}", domain=f"r{i // 2}") for i in range(4)]
    problem = compile_problem(build.instance(nodes, [job], domains=[Domain(id="r0"), Domain(id="r1")]))

    def score(*nodes: int) -> int:
        rows = [int(problem.class_option_start[k]) for k in problem.job_class.tolist()]
        places = zip(rows, nodes, range(3), strict=True)
        return PREFER.score(problem, tuple(Placement(row, (node,), (4 * node + gpu,)) for row, node, gpu in places))

    assert [score(0, 0, 0), score(0, 1, 0), score(2, 0, 1), score(0, 1, 2)] == [0, 1, 2, 3]
    assert PREFER.worst(problem) == 3


@given(round_=tree_rounds(), choice=choices)
def test_deltas_are_differences_of_scores(round_: Instance, choice: Choice) -> None:
    """Of each member of a tree in turn, wherever it is put, and taken away again."""
    problem = compile_problem(round_)
    state = State(problem)
    for job in choice.shuffled(problem.tree_of):
        option = choice.pick(tuple(problem.options_of(job)))
        if state.placed(problem.tree_of[job].members):
            name = problem.options.name[next(iter(state.placed(problem.tree_of[job].members).values())).option]
            rows = [o for o in problem.options_of(job) if problem.options.name[o] == name]
            if not rows:
                continue
            option = choice.pick(rows)
        workers, each = int(problem.options.workers[option]), int(problem.options.gpus[option])
        nodes = tuple(choice.number(0, problem.num_nodes - 1) for _ in range(workers))
        placement = Placement(option, nodes, tuple(problem.first_gpu[node] for node in nodes for _ in range(each)))
        for cost in COSTS:
            if cost.name in ("prefer", "communication"):
                before = cost.score(problem, state.allocation())
                delta = cost.delta(state, Move(job, placement))
                undo = state.apply(Move(job, placement))
                assert cost.score(problem, state.allocation()) == before + delta <= max(cost.worst(problem), 0)
                assert cost.delta(state, undo) == -delta
                state.apply(undo)
        state.apply(Move(job, placement))
