"""Trees of groups, segments and spread: exact models, greedy and the referee against brute force over the records."""

from hypothesis import event, given
from hypothesis import strategies as st

from helpers.tree_oracle import TreeOracle
from placeopt import Instance
from placeopt.live_cluster import Engine
from strategies import tree_rounds

EXACT = ("counts", "counts-cpsat", "assignment")


@given(round_=st.one_of(tree_rounds(), tree_rounds(running=True)))
def test_exact_models_find_what_brute_force_finds(engine: Engine, round_: Instance) -> None:
    """The best value, and at it the least that preferences cost where nothing else costs."""
    value, prefer = TreeOracle(round_).best()
    for method in EXACT:
        plan = engine.solve(round_, method=method, time_limit_s=20)
        assert (plan.levels[0].objective, plan.levels[0].bound) == (value, value), method
        if set(plan.costs) == {"prefer"}:
            assert (plan.costs["prefer"].raw, plan.status) == (prefer, "optimal"), method
    greedy = engine.solve(round_, method="best-fit", time_limit_s=20)
    event(f"greedy finds {'all' if greedy.levels[0].objective == value else 'less'}")
