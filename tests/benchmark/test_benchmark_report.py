"""From rows to tables and curves; every figure of a small benchmark is worked out by hand here."""

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from placeopt import BadInput
from placeopt.benchmark import (
    Case,
    CaseAnswer,
    Journal,
    Known,
    Row,
    plan_cases,
    report_views,
    run_cases,
    score_rows,
)
from placeopt.view import Table, View


def row(instance: str, solver: str, wall: float, objective: int | None, bound: int | None, **fields: Any) -> Row:
    """
    Build a row of a model to be minimised, limit 10 s; its trajectory is one point at its end.

    ``fields`` are of the row, of its case (path, sha256) or of its answer (status, message, sense).
    """
    case: dict[str, Any] = {"instance": instance, "path": f"{instance}.gap", "kind": "linear", "solver": solver}
    case |= {"sha256": "0" * 64, "seed": 0, "time_limit_s": 10.0, "threads": 1}
    proven = objective is not None and objective == bound
    answer: dict[str, Any] = {"status": "optimal" if proven else "feasible", "sense": "min"}
    answer |= {"objective": objective, "bound": bound, "wall_s": wall, "cpu_s": 2 * wall}
    made: dict[str, Any] = {"run": 1, "verdict": "timeout", "began": "now", "load_before": 0.5, "load_after": 1.5}
    made |= {"trajectory": ((wall, objective, bound, None, None),)}
    for name, value in fields.items():
        (case if name in Case.model_fields else answer if name in CaseAnswer.model_fields else made)[name] = value
    return Row.model_validate({**made, "case": Case.model_validate(case), "answer": CaseAnswer.model_validate(answer)})


ROWS = (
    row("a", "fast", 1, 100, 100, verdict="ok"),
    row("a", "slow", 3, 100, 100, verdict="ok"),
    row("b", "fast", 10, 125, 80),
    row("b", "slow", 7, 100, 100, verdict="solved"),
    row("c", "fast", 1, 9, 9, verdict="ok"),
)


def reported(rows: Iterable[Row], known: Mapping[str, Known] | None = None, **fields: Any) -> tuple[View, ...]:
    with TemporaryDirectory() as folder:
        with Journal(Path(folder)) as journal:
            for one in rows:
                journal.add(one)
        return report_views(Path(folder), known or {}, **fields)


def tables_of(rows: Iterable[Row], known: Mapping[str, Known] | None = None, **fields: Any) -> dict[str, Table]:
    """Return the tables of the report of a benchmark with these rows."""
    return {table.name: table for view in reported(rows, known, **fields) for table in view.tables}


def lines_of(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a table by the names of its columns."""
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def curves_of(rows: Iterable[Row], name: str) -> dict[str, list[tuple[float, float]]]:
    """Return the steps of a curve of the report, by solver."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for solver, x, y in tables_of(rows)[name].rows:
        curves.setdefault(str(solver), []).append((float(x), float(y)))
    return curves


def test_summary_by_hand() -> None:
    """
    Of a and b, which both have run; shift 1.

    fast: 1 s and its limit 10, as long as it took: (2 x 11)^(1/2) - 1 = 3.6904. CPU 2 and 20: (3 x 21)^(1/2) - 1 =
    6.9373. PAR2 (1 + 20) / 2, PAR10 (1 + 100) / 2. Gaps 0 and 25 / 125: 10 % on average. Primal: 1 s on a; on b nothing
    until 10: mean 5.5. slow: (4 x 8)^(1/2) - 1 = 4.6569; CPU (7 x 15)^(1/2) - 1 = 9.2470; PAR2 = PAR10 = 5; gap 0;
    primal and primal-dual (3 + 7) / 2.
    """
    slow, fast, _ = lines_of(tables_of(ROWS)["Solvers"])
    assert {name: fast[name] for name in ("solver", "cases", "proven")} == {"solver": "fast", "cases": 2, "proven": 1}
    figures = ("wall", "spent", "CPU", "PAR2", "PAR10", "gap", "primal", "primal-dual")
    expected = [3.690416, 3.690416, 6.937254, 10.5, 50.5, 0.1, 5.5, 5.5]
    assert [fast[name] for name in figures] == pytest.approx(expected, abs=1e-6)
    expected = [4.656854, 4.656854, 9.246951, 5, 5, 0, 5, 5]
    assert [slow[name] for name in figures] == pytest.approx(expected, abs=1e-6)


def test_comparison_by_hand() -> None:
    """
    slow against fast: ratios (3 + 1) / (1 + 1) = 2 on a, (7 + 1) / (10 + 1) = 0.727 on b, geometric mean 1.206.

    With two pairs the interval is from the smaller to the larger. Gap points 0 and -20: one tie, one win.
    """
    [line] = tables_of(ROWS, baseline="fast")["Against fast"].rows
    assert line[:2] == ("slow", 2)
    assert list(line[2:]) == pytest.approx([(2 * 8 / 11) ** 0.5, 8 / 11, 2, -0.1, -0.2, 0, 1, 1, 0])


def test_interval_of_a_coin() -> None:
    """
    Gaps of 0 and 20 points apart, nine each: a mean of 18 draws of a fair coin, whose 2.5 % and 97.5 % points are 5/18
    and 13/18.

    P(at most 4 of 18) = 1.5 %, P(at most 5) = 4.8 %, so the 2.5 % point is 5 of 18. The same seed draws the same.
    """
    rows = []
    for i in range(18):
        rows.append(row(f"i{i:02}", "good", 10, 100, 100, verdict="solved"))
        rows.append(row(f"i{i:02}", "coin", 10, 125 if i % 2 else 100, 80))
    [line] = tables_of(rows, baseline="good")["Against good"].rows
    assert line[5:8] == pytest.approx((0.1, 0.2 * 5 / 18, 0.2 * 13 / 18))
    assert tables_of(rows, baseline="good")["Against good"].rows == (line,)


@pytest.mark.parametrize(
    ("sense", "objective", "best", "gap"),
    [
        *[("max", 80, 100, 0.2), ("min", 125, 100, 0.2), ("max", 100, 100, 0), ("max", 0, 0, 0), ("max", 0, 5, 1)],
        *[("max", -5, 5, 1), ("max", None, 5, 1), ("min", -80, -100, 0.2), ("max", 3, None, 0)],
    ],
)
def test_primal_gap(sense: str, objective: int | None, best: int | None, gap: float) -> None:
    """|100 - 80| / 100 = 0.2, from either side: to be minimised, 125 against 100 is 25 / 125."""
    cases = score_rows([row("a", "s", 1, objective, None, sense=sense)], {"a": Known(best, None)})
    assert cases.gap.tolist() == [pytest.approx(gap)]


@pytest.mark.parametrize(
    ("points", "seconds"), [([(2, 200), (5, 100)], 3.5), ([], 10), ([(2, 200), (12, 100)], 6), ([(0, 100)], 0)]
)
def test_integrals(points: list[tuple[float, int]], seconds: float) -> None:
    """
    Gap 1 for 2 s, 0.5 for 3 s, 0 for 5 s: 3.5 s of 10.

    Nothing ever: all 10. What comes after the limit does not count: 1 for 2 s, 0.5 for the other 8, 6.
    """
    course = tuple((at, value, 100, None, None) for at, value in points)
    one = row("a", "highs", 10, 100 if points else None, 100, trajectory=course)
    cases = score_rows([one], {"a": Known(100, 100)})
    assert cases[["primal", "primal_dual"]].to_numpy().ravel().tolist() == pytest.approx([seconds, seconds])


def test_without_a_bound_the_gap_to_it_is_whole() -> None:
    """The best value from the start, and no bound until the limit."""
    one = row("a", "highs", 10, 100, None, trajectory=((0, 100, None, None, None),))
    cases = score_rows([one], {"a": Known(100, None)})
    assert cases[["primal", "primal_dual"]].to_numpy().ravel().tolist() == [0, 10]


def test_course() -> None:
    """The mean gap to the best known value: 1 until a value is found, then what it lacks; the last at the limit."""
    one = row("a", "highs", 10, 100, 100, trajectory=((2, 200, None, None, None), (10, 100, 100, None, None)))
    curve = curves_of([one], "Mean gap over time")["highs"]
    assert curve[-1] == (10, 0)
    for at, gap in curve[:-1]:
        assert gap == pytest.approx(1 if at < 2 else 0.5), at


def test_performance_profile() -> None:
    """
    Four cases. A: 1, 4, 10, none. B: 2, 2, none, none. Best: 1, 2, 10, none.

    Ratios of A: 1, 2, 1, so 2 of 4 at 1 and 3 of 4 at 2; of B: 2, 1, so 1 of 4 at 1 and 2 of 4 at 2. No clock tells
    times below a millisecond apart. All curves end a little behind the last step.
    """

    def profile(**seconds: list[float | None]) -> dict[str, list[tuple[float, float]]]:
        rows = []
        for name, times in seconds.items():
            for i, wall in enumerate(times):
                done = (10, 5, 4) if wall is None else (wall, 5, 5)
                rows.append(row(f"i{i}", name, *done, verdict="timeout" if wall is None else "solved"))
        return curves_of(rows, "Performance profile")

    found = profile(A=[1, 4, 10, None], B=[2, 2, None, None])
    assert found == {"A": [(1.0, 0.5), (2.0, 0.75), (2.2, 0.75)], "B": [(1.0, 0.25), (2.0, 0.5), (2.2, 0.5)]}
    assert profile(A=[None]) == {"A": [(1.0, 0.0), (1.1, 0.0)]}
    assert profile(A=[0.0], B=[0.0005]) == {name: [(1.0, 1.0), (1.1, 1.0)] for name in "AB"}
    assert curves_of(ROWS, "Cases within a gap")["fast"] == [
        (0.0, 0.5),
        (0.2, 1.0),
        (1.0, 1.0),
    ]  # of a and b, which both have run


def test_best_of_every_instance_by_hand() -> None:
    """
    On a both have 100, fast after 1 s, and both prove it; on b slow alone, though the bound says 80 to 100.

    A liar's value and bound count for nothing, but it is named.
    """
    liar = row("a", "liar", 0.1, 1, 1, verdict="fail")
    tables = tables_of([*ROWS, liar], {"b": Known(90, 80)})
    assert tables["Best by instance"].rows == (
        ("a", 100, 100, 100, 0.0, 2, 2, "fast", 1.0),
        ("b", 90, 100, 100, 0.0, 1, 1, "slow", 7.0),
        ("c", 9, 9, 9, 0.0, 1, 1, "fast", 1.0),
    )
    assert tables["Wrong, or without an answer"].rows == (("a", "liar", 0, "fail", "contradicts what is known"),)


def test_the_best_of_an_instance_whose_first_case_has_no_answer() -> None:
    """An abort states no sense; a model to be minimised keeps its own, and value and bound are 3 / 8 apart."""
    gone = row("a", "a-gone", 1, None, None, verdict="abort").model_copy(
        update={"answer": CaseAnswer(status="crashed")}
    )
    tables = tables_of([gone, row("a", "b", 1, 9, 3), row("a", "c", 1, 8, 5)])
    [line] = tables["Best by instance"].rows
    assert line[2:5] == (8, 5, 0.375)
    [first] = [line for line in tables["By instance and solver"].rows if line[1] == "b"]
    assert first[5:8] == (9, 9, 3)


def test_known_values_move_gaps() -> None:
    """If 50 is known of b, 100 is half way and 125 at 60 %."""
    cases = score_rows(ROWS, {"b": Known(50, 40)}).query("instance == 'b'")
    assert dict(zip(cases.solver, cases.gap, strict=True)) == {"fast": pytest.approx(0.6), "slow": pytest.approx(0.5)}


def test_what_is_wrong_counts_as_nothing() -> None:
    """Neither its value nor its time helps it."""
    wrong = row("a", "liar", 0.1, 1, 1, verdict="fail")
    cases = score_rows([wrong], {"a": Known(100, 100)})
    assert cases[["proven", "gap", "primal", "best"]].to_numpy().tolist() == [[False, 1.0, 10.0, 100]]
    assert tables_of([wrong], {"a": Known(100, 100)})["Verdicts"].rows == (("liar", 1, 0, 0, 0, 0, 1, 0, 0),)


def test_unsupported_cases_enter_no_mean() -> None:
    """What one solver cannot take is compared for none; one that can take nothing hides no other."""
    cannot = {"verdict": "unsupported", "trajectory": (), "status": "unsupported", "message": "'x' is continuous"}
    able = [("a", "able", 1), ("a", "other", 2), ("b", "able", 1)]
    rows = [row(*case, 10, 10, verdict="solved") for case in able]
    rows += [row(name, solver, 1, None, None, **cannot) for name, solver in (("b", "other"), ("a", "none"))]
    tables = tables_of(rows)
    assert [line[:2] for line in tables["Solvers"].rows] == [("able", 1), ("other", 1), ("virtual best", 1)]
    gaps = {(line[0], line[1]): line[8] for line in tables["By instance and solver"].rows}
    assert (gaps["b", "other"], gaps["a", "able"]) == (None, 0.0)
    [cells] = [line for line in lines_of(tables["Cases"]) if (line["instance"], line["solver"]) == ("b", "other")]
    assert [cells[name] for name in ("gap", "primal", "primal-dual")] == [None, None, None]
    assert [line[3] for line in tables["Wrong, or without an answer"].rows] == ["unsupported", "unsupported"]


def test_a_solver_without_a_trajectory_has_no_integrals() -> None:
    """Pulp-scip tells nothing before its end, so there is no area; highs has one."""
    rows = [row("a", solver, 1, 10, 10, verdict="solved") for solver in ("highs", "pulp-scip")]
    highs, scip, _ = lines_of(tables_of(rows)["Solvers"])
    assert [highs["primal"], highs["primal-dual"], scip["primal"], scip["primal-dual"]] == [1.0, 1.0, None, None]
    assert "pulp-scip" not in curves_of(rows, "Mean gap over time")


def test_the_rank_is_by_what_the_page_names() -> None:
    """Gap, then PAR10, then the primal-dual integral, each as the table shows it; the title says so."""
    walls = {"b-slow": 5, "c-fast": 4, "pulp-scip": 4}
    rows = [row("a", "x-gap", 1, 11, 10), *(row("a", name, s, 10, 10, verdict="solved") for name, s in walls.items())]
    table = tables_of(rows)["Solvers"]
    assert [line[0] for line in table.rows] == ["c-fast", "pulp-scip", "b-slow", "x-gap", "virtual best"]
    assert "best first, by gap, PAR10, primal-dual" in table.note


def test_settings_distinguish_solvers() -> None:
    """One solver with two limits is two columns of a report."""
    rows = [row("a", "fast", 1, 100, 100, time_limit_s=limit) for limit in (10.0, 60.0)]
    assert score_rows(rows, {}).solver.tolist() == ["fast 10 s x 1", "fast 60 s x 1"]


FIELD = (
    row("a", "highs", 1, 5, 5, verdict="ok"),
    row("a", "pulp-cbc", 7, 5, 5, verdict="solved"),
    row("b", "highs", 10, 9, 4, verdict="timeout"),
    row("b", "pulp-cbc", 3, 8, 8, verdict="better"),
    row("c", "highs", 2, 1, 1, verdict="ok"),
    row("c", "pulp-cbc", 1, None, None, verdict="unsupported"),
)
KNOWN = {"a": Known(5, 5), "b": Known(8, 8), "c": Known(1, 1)}


def test_seconds_or_the_verdict() -> None:
    """An instance a row; what is proven stands with its seconds, whatever its verdict."""
    table = tables_of(FIELD, KNOWN)["Seconds by instance"]
    assert tuple(column.name for column in table.columns) == ("instance", "seed", "pulp-cbc", "highs")
    assert [line[2:] for line in table.rows] == [(7.0, 1.0), (3.0, "timeout"), ("unsupported", 2.0)]


@pytest.mark.parametrize(
    ("shift_s", "expected"),
    [
        (1.0, {"pulp-cbc": (2, 4.657, 1.262), "highs": (1, 3.690, 1), "virtual best": (2, 1.828, 0.4955)}),
        (10.0, {"pulp-cbc": (2, 4.866, 1.007), "highs": (1, 4.832, 1), "virtual best": (2, 1.958, 0.4052)}),
    ],
)
def test_scaled_means(shift_s: float, expected: dict[str, tuple[float, ...]]) -> None:
    """
    By hand on the instances a and b, which both take.

    Shift 1: highs sqrt(2 x 11) - 1 = 3.690, CBC sqrt(8 x 4) - 1 = 4.657, virtual best sqrt(2 x 4) - 1 = 1.828. Shift
    10: sqrt(11 x 20) - 10 = 4.832, sqrt(17 x 13) - 10 = 4.866, sqrt(11 x 13) - 10 = 1.958.
    """
    rows = [one for one in FIELD if one.case.instance != "c"]
    lines = lines_of(tables_of(rows, KNOWN, shift_s=shift_s)["Solvers"])
    assert [line["solver"] for line in lines] == list(expected)
    for line in lines:
        assert (line["proven"], line["wall"], line["scaled"]) == pytest.approx(expected[line["solver"]], abs=1e-3)


def test_versions_and_options(tmp_path: Path) -> None:
    """Of the last run that states them; CBC's own version, not PuLP's."""
    (tmp_path / "tiny.gap").write_text("1 2\n 3 4\n 1 1\n 2\n")
    solvers = ["highs", "pulp-cbc"]
    plan = plan_cases([str(tmp_path / "tiny.gap")], solvers, time_limit_s=10, seeds=[0], threads=1)
    run_cases(plan.cases, tmp_path / "out")
    table = report_views(tmp_path / "out")[0].table("Versions and options")
    rows = {line[0]: line[1:] for line in table.rows}
    assert rows["highs"][0] == f"highspy {version('highspy')}"
    assert rows["pulp-cbc"][0].startswith("CBC 2.")
    assert "preprocess off" in rows["pulp-cbc"][1]


def test_many_solvers_do_not_crowd_out_the_curves() -> None:
    """Six and the baseline are drawn; all have their line in the table."""
    rows = [row("a", f"s{i:02}", 1 + i / 10, 5, 5, verdict="solved") for i in range(40)]
    main, *charts = reported(rows, baseline="s30")
    assert len(main.table("Solvers").rows) == 41
    for view in charts:
        assert view.chart is not None
        assert {line[0] for line in view.tables[0].rows} == {*(f"s0{i}" for i in range(6)), "s30"}


def test_kinds_are_compared_apart() -> None:
    """Tables end in the kind; a solver of one is compared with none of another."""
    rows = [*ROWS[:2], row("r", "fcfs", 1, 3, 9, kind="placement", sense="max")]
    main, *charts = reported(rows)
    assert [len(main.table(f"Solvers, {kind}").rows) for kind in ("models", "rounds")] == [3, 1]
    assert "fcfs is the best of 1 solver, rounds" in main.title
    assert {view.title for view in charts} >= {"Performance profile, models", "Cases within a gap, rounds"}


def test_the_conditions_are_stated() -> None:
    """Counts, limits, load; what is wrong colours the answer, and the same rows give the same answer."""
    main, *_ = reported(ROWS)
    assert (main.figure("cases"), main.figure("compared"), main.verdict) == (5, 4, "good")
    assert main.notes[1] == "10 s a case; threads 1; seeds 0; load 0.5 to 1.5"
    assert reported(ROWS)[0] == main
    assert reported([*ROWS, row("a", "liar", 0.1, 1, 1, verdict="fail")])[0].verdict == "bad"


def test_a_wrong_baseline_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'none' is not a solver of .*fast, slow"):
        reported(ROWS, baseline="none")
    with pytest.raises(BadInput, match="no such file"):
        report_views(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="no rows yet"):
        reported([])
