"""Quadratic assignment problems as cases: searched, linearised, judged, checked again."""

from pathlib import Path

import numpy as np
import pytest

from make_qap import enumerated, text
from placeopt import BadInput, Unsupported
from placeopt.benchmark.campaign import plan_cases, run_cases
from placeopt.benchmark.quadratic_case import MAX_LINEARISED, linearised, order_cost, order_faults
from placeopt.benchmark.recheck import recheck
from placeopt.benchmark.report import make_report
from placeopt.solvers.registry import load
from placeopt.solvers.result import SolveOptions

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


def drawn(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw two matrices with diagonals and zeros; every second pair symmetric."""
    draw = np.random.default_rng(seed)
    one, other = (draw.integers(0, 9, (n, n)) * (draw.random((n, n)) < 0.7) for _ in range(2))
    return (one + one.T, other + other.T) if seed % 2 else (one, other)


@pytest.mark.parametrize("solver", ["highs", "cpsat", "pulp-cbc"])
@pytest.mark.parametrize("seed", range(6))
def test_the_linear_model_has_the_optimum(solver: str, seed: int) -> None:
    """Of all orders tried; the order is read from the first variables, and costs what the model says."""
    flows, distances = drawn(seed, 3 + seed % 3)
    n = len(flows)
    solution = load(solver)(linearised(flows, distances), SolveOptions(30.0))
    assert solution.status == "optimal"
    assert solution.objective == enumerated(flows, distances)
    order = solution.values[: n * n].reshape(n, n).argmax(axis=1)
    assert order_faults(flows, distances, order, solution.objective) == []


def test_a_larger_one_is_not_linearised() -> None:
    n = MAX_LINEARISED + 1
    with pytest.raises(Unsupported, match="linearised up to 20 only; use 'map'"):
        linearised(np.ones((n, n), dtype=np.int64), np.ones((n, n), dtype=np.int64))


def test_faults_of_an_order() -> None:
    """Neither a place twice nor a cost that is another one passes."""
    flows, distances = drawn(0, 4)
    order = np.array([2, 0, 3, 1])
    by_hand = sum(int(flows[i, j]) * int(distances[order[i], order[j]]) for i in range(4) for j in range(4))
    assert order_cost(flows, distances, order) == by_hand
    assert order_faults(flows, distances, order, by_hand) == []
    assert order_faults(flows, distances, order, by_hand + 1) == [
        f"objective is stated as {by_hand + 1}, but it is {by_hand}"
    ]
    assert order_faults(flows, distances, np.array([2, 0, 3, 3]), by_hand) == ["not each of 4 places once"]
    assert order_faults(flows, distances, order[:3], by_hand) == ["not each of 4 places once"]


def test_cases_by_search_and_by_solvers(tmp_path: Path) -> None:
    """
    All find the optimum of an asymmetric problem with linear costs, in shuffled order too; the check agrees.

    The search proves nothing where Gilmore and Lawler's bound is apart; a stored order that is changed is found out.
    """
    flows, distances = drawn(2, 5)
    (tmp_path / "five.dat").write_text(text(flows, distances))
    optimum = enumerated(flows, distances)
    (tmp_path / "best.solu").write_text(f"=opt= five {optimum}\n")
    plan = plan_cases(
        [str(tmp_path / "five.dat")], ["map", "highs"], time_limit_s=1.0, seeds=[3], threads=1, permute=True
    )
    out = tmp_path / "out"
    rows = run_cases(plan.cases, out, solu=tmp_path / "best.solu")
    assert [(row.case.kind, row.case.solver, row.answer.objective) for row in rows] == [
        ("quadratic", "map", optimum),
        ("quadratic", "highs", optimum),
    ]
    assert rows[1].verdict == "ok"
    assert rows[0].verdict in ("ok", "timeout")
    assert rows[0].answer.bound <= optimum
    assert all(row.answer.sense == "min" and row.trajectory for row in rows)
    assert [row.faults for row in recheck(out)] == [(), ()]
    assert make_report(out, plots=False).markdown().startswith("# Benchmark")
    stored = out / rows[0].solution
    stored.unlink()
    stored.with_suffix("").write_text('{"instance": "five", "values": [0, 1, 2, 3, 3]}')
    (out / "results.jsonl").write_text((out / "results.jsonl").read_text().replace(stored.name, stored.stem))
    assert recheck(out)[0].faults == ("not each of 5 places once",)


def test_a_ring_on_a_cube_is_proven_and_a_large_one_unsupported(tmp_path: Path) -> None:
    """The bound of the search meets the optimum at once; HiGHS does not take n = 32."""
    plan = plan_cases(
        [str(INSTANCES / "qap" / "cube5-ring.dat")], ["map", "highs"], time_limit_s=10.0, seeds=[0], threads=1
    )
    rows = run_cases(plan.cases, tmp_path, solu=INSTANCES / "best.solu")
    assert [row.verdict for row in rows] == ["ok", "unsupported"]


def test_map_takes_nothing_else() -> None:
    """It is a solver of quadratic assignment problems alone, and methods of rounds take none of these."""
    with pytest.raises(BadInput, match=r"none of map takes gap1-0; these do: cpsat"):
        plan_cases([str(INSTANCES / "gap" / "gap1-0.gap")], ["map"], time_limit_s=1, seeds=[0], threads=1)
    with pytest.raises(BadInput, match=r"none of auto takes grid2x3; these do: map, cpsat"):
        plan_cases([str(INSTANCES / "qap" / "grid2x3.dat")], ["auto"], time_limit_s=1, seeds=[0], threads=1)
