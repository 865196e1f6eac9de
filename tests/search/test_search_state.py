"""What the state of the local search takes on, and where that ends."""

from helpers.brute_force import placements
from placeopt import build, search
from placeopt.model import Domain
from placeopt.problem import compile_problem
from placeopt.terms import cost, weighted_costs
from strategies.choice import seeded
from strategies.rounds import make_round


def test_what_has_no_differences_is_named() -> None:
    """Some random round is judged for each of these."""
    missing = {"Spread", "MinimalUtility", "HorusCost", "Fgd", "Interference", "edges in Communication"}
    for seed in range(300):
        problem = compile_problem(make_round(seeded(f"named {seed}")))
        judged = search.what_is_judged(problem, weighted_costs(problem))
        if judged is not None:
            missing -= {type(rule).__name__ for rule in judged.rules} | {type(w.cost).__name__ for w in judged.weighted}
            missing -= {f"edges in {type(w.cost).__name__}" for w in judged.paths}
        if not missing:
            return
    raise AssertionError(missing)


def test_a_node_outside_of_all_racks_leaves_others_inside() -> None:
    """Fragmentation of racks counts on nodes of the same machine that lie in one."""
    machines = [build.machine("m", gpus=4)]
    nodes = [build.node("apart", "m"), build.node("inside", "m", domain="r")]
    round_ = build.instance(nodes, [build.job("j", gpus=2)], machines=machines, domains=[Domain(id="r")])
    problem = compile_problem(round_)
    weighted = weighted_costs(problem)
    for way in placements(problem, 0):
        state = search.state_of(problem, weighted, (None,))
        search.put(state, problem, 0, way)
        assert state.cost == cost(problem, (way,), weighted)
