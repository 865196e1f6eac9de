"""Tables in the forms of the field: seconds or verdict, scaled means, rows for IPET, versions and options."""

from importlib.metadata import version
from pathlib import Path

import pytest
from test_benchmark_report import row, tables_of

from placeopt.benchmark import make_report, plan_cases, run_cases, score_rows
from placeopt.formats import Known

ROWS = (
    row("a", "highs", wall=1, objective=5, bound=5, verdict="ok"),
    row("a", "pulp-cbc", wall=7, objective=5, bound=5, verdict="solved"),
    row("b", "highs", wall=10, objective=9, bound=4, verdict="timeout"),
    row("b", "pulp-cbc", wall=3, objective=8, bound=8, verdict="better"),
    row("c", "highs", wall=2, objective=1, bound=1, verdict="ok"),
    row("c", "pulp-cbc", wall=1, objective=None, bound=None, verdict="unsupported"),
)
KNOWN = {"a": Known(5, 5), "b": Known(8, 8), "c": Known(1, 1)}


def test_seconds_or_the_verdict() -> None:
    """An instance a row; what is proven stands with its seconds, whatever its verdict."""
    table = tables_of(ROWS, KNOWN)["seconds"]
    assert table.columns[:2] == ("instance", "seed")
    cells = {line[0]: dict(zip(table.columns[2:], line[2:], strict=True)) for line in table.rows}
    assert cells["a"] == {"highs": 1.0, "pulp-cbc": 7.0}
    assert cells["b"] == {"highs": "timeout", "pulp-cbc": 3.0}
    assert cells["c"] == {"highs": 2.0, "pulp-cbc": "unsupported"}


def test_scaled_means_with_both_shifts() -> None:
    """
    By hand on the instances a and b, which both take.

    Shift 1: highs sqrt(2 x 11) - 1 = 3.690, CBC sqrt(8 x 4) - 1 = 4.657, virtual best sqrt(2 x 4) - 1 = 1.828. Shift
    10: sqrt(11 x 20) - 10 = 4.832, sqrt(17 x 13) - 10 = 4.866, sqrt(11 x 13) - 10 = 1.958.
    """
    table = tables_of([one for one in ROWS if one.case.instance != "c"], KNOWN)["scaled"]
    assert table.columns == ("solver", "proven", "s, shift 1", "scaled, shift 1", "s, shift 10", "scaled, shift 10")
    rows = {line[0]: line[1:] for line in table.rows}
    assert [line[0] for line in table.rows] == ["virtual best", "highs", "pulp-cbc"]
    assert rows["highs"] == pytest.approx((1, 3.690, 1, 4.832, 1), abs=1e-3)
    assert rows["pulp-cbc"] == pytest.approx((2, 4.657, 1.262, 4.866, 1.007), abs=1e-3)
    assert rows["virtual best"] == pytest.approx((2, 1.828, 0.4955, 1.958, 0.4052), abs=1e-3)


def test_rows_for_ipet() -> None:
    """Its keys and its words of status; what could not run is missing."""
    table = tables_of(ROWS, KNOWN)["ipet"]
    rows = [dict(zip(table.columns, line, strict=True)) for line in table.rows]
    assert [line["Status"] for line in rows] == ["ok", "solved_not_verified", "timelimit", "better", "ok", "missing"]
    assert rows[2] | {"PrimalIntegral": None} == {
        "ProblemName": "b",
        "Solver": "highs",
        "Settings": "seed-0",
        "Status": "timelimit",
        "SolvingTime": 10.0,
        "TimeLimit": 10.0,
        "PrimalBound": 9,
        "DualBound": 4,
        "OptVal": 8,
        "Objsense": 1,
        "PrimalIntegral": None,
    }


def test_versions_and_options(tmp_path: Path) -> None:
    """Of the last run that states them; CBC's own version, not PuLP's."""
    (tmp_path / "tiny.gap").write_text("1 2\n 3 4\n 1 1\n 2\n")
    sets = [str(tmp_path / "tiny.gap")]
    plan = plan_cases(sets, ["highs", "pulp-cbc"], time_limit_s=10, seeds=[0], threads=1)
    run_cases(plan.cases, tmp_path / "out")
    [table] = [one for one in make_report(tmp_path / "out", plots=False).tables if one.name == "settings"]
    rows = {line[0]: line[1:] for line in table.rows}
    assert rows["highs"][0] == f"highspy {version('highspy')}"
    assert rows["pulp-cbc"][0].startswith("CBC 2.")
    assert "preprocess off" in rows["pulp-cbc"][1]


def test_cbc_has_a_trajectory(tmp_path: Path) -> None:
    """Its log names solutions before the end, in integers and in floating point; so there is a primal integral."""
    lines = "\n".join(f" x{j} gain {17 + 7 * j % 13}\n x{j} r{j % 3} {11 + 5 * j % 7}" for j in range(30))
    form = "NAME t\nOBJSENSE\n MAX\nROWS\n N gain\n L r0\n L r1\n L r2\nCOLUMNS\n"
    form += " M 'MARKER' 'INTORG'\n{}\n M 'MARKER' 'INTEND'\n{}"
    rest = "RHS\n RHS r0 41 r1 43 r2 47\nENDATA\n"
    (tmp_path / "integers.mps").write_text(form.format(lines, rest))
    (tmp_path / "mixed.mps").write_text(form.format(lines, f" y gain 0.5\n y r0 1\n{rest}"))
    sets = [str(tmp_path / name) for name in ("integers.mps", "mixed.mps")]
    plan = plan_cases(sets, ["pulp-cbc", "highs"], time_limit_s=10, seeds=[0], threads=1)
    rows = run_cases(plan.cases, tmp_path / "out")
    for case in score_rows(rows):
        assert case.row.answer.status == "optimal"
        assert case.primal_s is not None
        assert case.gap == 0
        if case.solver == "pulp-cbc":
            values = [point[1] for point in case.row.trajectory if point[1] is not None]
            assert len(values) >= 2, case.row.case.instance
            assert values[-1] == pytest.approx(case.row.answer.objective)
            assert values == sorted(values)
