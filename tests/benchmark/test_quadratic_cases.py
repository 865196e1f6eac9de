"""Quadratic assignment problems as cases: searched, linearised, judged, checked again."""

from pathlib import Path

import numpy as np
import pytest

from make_qap import enumerated, text
from placeopt import BadInput
from placeopt.benchmark import plan_cases, recheck, report_views, run_cases

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


@pytest.mark.parametrize("symmetric", [False, True])
def test_cases_by_search_and_by_solvers(tmp_path: Path, symmetric: bool) -> None:
    """
    All find the optimum of a problem with linear costs, in shuffled order too; the check agrees.

    The search proves nothing where Gilmore and Lawler's bound is apart; a stored order that is changed is found out.
    """
    draw = np.random.default_rng(2)
    flows, distances = (draw.integers(0, 9, (5, 5)) * (draw.random((5, 5)) < 0.7) for _ in range(2))
    if symmetric:
        flows, distances = flows + flows.T, distances + distances.T
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
    assert report_views(out)[0].figure("compared") == 2
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
