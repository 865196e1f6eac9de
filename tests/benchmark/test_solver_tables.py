"""Tables in the forms of the field: seconds or verdict, scaled means, rows for IPET, versions and options."""

from pathlib import Path

import pytest
from test_benchmark_report import row

from placeopt.benchmark.campaign import plan_cases, run_cases
from placeopt.benchmark.journal import RunRecord
from placeopt.benchmark.scored_cases import ScoredCase, score_rows
from placeopt.benchmark.solver_tables import ipet_table, scaled_table, seconds_table, settings_table
from placeopt.benchmark.solver_versions import run_versions
from placeopt.formats.solu import Known
from placeopt.solvers import cbc

ROWS = (
    row("a", "highs", wall=1, objective=5, bound=5, verdict="ok"),
    row("a", "pulp-cbc", wall=7, objective=5, bound=5, verdict="solved"),
    row("b", "highs", wall=10, objective=9, bound=4, verdict="timeout"),
    row("b", "pulp-cbc", wall=3, objective=8, bound=8, verdict="better"),
    row("c", "highs", wall=2, objective=1, bound=1, verdict="ok"),
    row("c", "pulp-cbc", wall=1, objective=None, bound=None, verdict="unsupported"),
)
KNOWN = {"a": Known(5, 5), "b": Known(8, 8), "c": Known(1, 1)}
LOG = b"""\
Continuous objective value is 976.482 - 0.00 seconds
Cbc0038I Solution found of -930
Cbc0012I Integer solution of -940 found by feasibility pump after 0 iterations and 0 nodes (0.32 seconds)
Cbc0010I After 0 nodes, 1 on tree, -940 best solution, best possible -973.97742 (0.44 seconds)
Cbc0012I Integer solution of -940 found by Previous solution after 0 iterations and 0 nodes (0.71 seconds)
Cbc0010I After 100 nodes, 8 on tree, -940 best solution, best possible -960.5 (1.20 seconds)
Cbc0016I Integer solution of -945 found by strong branching after 3741 iterations and 174 nodes (2.59 seconds)
Result - Optimal solution found
"""


def scored() -> list[ScoredCase]:
    return score_rows(ROWS, KNOWN)


def test_seconds_or_the_verdict() -> None:
    """An instance a row; what is proven stands with its seconds, whatever its verdict."""
    table = seconds_table(scored())
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
    table = scaled_table([case for case in scored() if case.row.case.instance != "c"])
    assert table.columns == ("solver", "proven", "s, shift 1", "scaled, shift 1", "s, shift 10", "scaled, shift 10")
    rows = {line[0]: line[1:] for line in table.rows}
    assert [line[0] for line in table.rows] == ["virtual best", "highs", "pulp-cbc"]
    assert rows["highs"] == pytest.approx((1, 3.690, 1, 4.832, 1), abs=1e-3)
    assert rows["pulp-cbc"] == pytest.approx((2, 4.657, 1.262, 4.866, 1.007), abs=1e-3)
    assert rows["virtual best"] == pytest.approx((2, 1.828, 0.4955, 1.958, 0.4052), abs=1e-3)


def test_rows_for_ipet() -> None:
    """Its keys and its words of status; what could not run is missing."""
    rows = [dict(zip(ipet_table(scored()).columns, line, strict=True)) for line in ipet_table(scored()).rows]
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


def test_versions_and_options() -> None:
    """Of the last run that states them; CBC's own version, not PuLP's."""
    versions = run_versions(["highs", "pulp-cbc"])
    assert versions["pulp-cbc"].startswith("CBC 2.")
    run = RunRecord(number=1, began="now", command="x", machine={}, versions=versions, jobs=1)
    rows = {line[0]: line[1:] for line in settings_table([run], scored()).rows}
    assert rows["highs"][0] == f"highspy {versions['highspy']}"
    assert rows["pulp-cbc"][0] == versions["pulp-cbc"]
    assert "preprocess off" in rows["pulp-cbc"][1]


def test_a_log_of_cbc_as_a_trajectory() -> None:
    """Its own seconds; the feasibility pump's remark without a time is left out, and nothing gets worse."""
    assert cbc.trajectory(LOG) == [
        (0.32, -940.0, None),
        (0.44, -940.0, -973.97742),
        (0.71, -940.0, -973.97742),
        (1.20, -940.0, -960.5),
        (2.59, -945.0, -960.5),
    ]
    assert cbc.trajectory(b"nothing of it") == []
    ended = LOG + b"Total time (CPU seconds):       0.53   (Wallclock seconds):       2.82\n"
    assert cbc.trajectory(ended, 3.0)[0] == (pytest.approx(0.50), -940.0, None)  # 0.18 s went by before CBC began


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
