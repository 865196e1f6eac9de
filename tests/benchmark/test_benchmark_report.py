"""From rows to tables, figures and files; every figure of a small benchmark is worked out by hand here."""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from placeopt import BadInput
from placeopt.benchmark import (
    BenchmarkReport,
    Case,
    CaseAnswer,
    Journal,
    Known,
    Row,
    Table,
    can_draw,
    make_report,
    plan_cases,
    render,
    run_cases,
    score_rows,
    write_report,
)


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


def reported(rows: Iterable[Row], known: Mapping[str, Known] | None = None, **fields: Any) -> BenchmarkReport:
    with TemporaryDirectory() as folder:
        with Journal(Path(folder)) as journal:
            for one in rows:
                journal.add(one)
        return make_report(Path(folder), known or {}, plots=False, **fields)


def tables_of(rows: Iterable[Row], known: Mapping[str, Known] | None = None, **fields: Any) -> dict[str, Table]:
    """Return the tables of the report of a benchmark with these rows."""
    return {table.name: table for table in reported(rows, known, **fields).tables}


def curves_of(rows: Iterable[Row], figure: str) -> dict[str, list[tuple[float, float]]]:
    """Return the steps of a figure of the report, by solver."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for name, x, y in next(one for one in reported(rows).figures if one.name == figure).rows:
        curves.setdefault(str(name), []).append((float(x), float(y)))
    return curves


def test_summary_by_hand() -> None:
    """
    Of a and b, which both have run; shift 1.

    fast: 1 s and its limit 10, as long as it took: (2 x 11)^(1/2) - 1 = 3.6904. CPU 2 and 20: (3 x 21)^(1/2) - 1 =
    6.9373. PAR2 (1 + 20) / 2, PAR10 (1 + 100) / 2. Gaps 0 and 25 / 125: 10 % on average. Primal: 1 s on a; on b nothing
    until 10: mean 5.5. slow: (4 x 8)^(1/2) - 1 = 4.6569; CPU (7 x 15)^(1/2) - 1 = 9.2470; PAR2 = PAR10 = 5; gap 0;
    primal and primal-dual (3 + 7) / 2.
    """
    slow, fast = tables_of(ROWS)["summary"].rows
    assert fast[:3] == ("fast", 2, 1)
    assert list(fast[3:]) == pytest.approx([3.690416, 3.690416, 6.937254, 10.5, 50.5, 10, 5.5, 5.5], abs=1e-6)
    assert list(slow[3:9]) == pytest.approx([4.656854, 4.656854, 9.246951, 5, 5, 0], abs=1e-6)
    assert list(slow[9:]) == pytest.approx([5, 5])


def test_comparison_by_hand() -> None:
    """
    slow against fast: ratios (3 + 1) / (1 + 1) = 2 on a, (7 + 1) / (10 + 1) = 0.727 on b, geometric mean 1.206.

    With two pairs the interval is from the smaller to the larger. Gap points 0 and -20: one tie, one win.
    """
    [line] = tables_of(ROWS, baseline="fast")["comparison"].rows
    assert line[:2] == ("slow", 2)
    assert list(line[2:]) == pytest.approx([(2 * 8 / 11) ** 0.5, 8 / 11, 2, -10, -20, 0, 1, 1, 0])


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
    [line] = tables_of(rows, baseline="good")["comparison"].rows
    assert line[5:8] == pytest.approx((10, 20 * 5 / 18, 20 * 13 / 18))
    assert tables_of(rows, baseline="good")["comparison"].rows == (line,)


@pytest.mark.parametrize(
    ("sense", "objective", "best", "gap"),
    [
        *[("max", 80, 100, 0.2), ("min", 125, 100, 0.2), ("max", 100, 100, 0), ("max", 0, 0, 0), ("max", 0, 5, 1)],
        *[("max", -5, 5, 1), ("max", None, 5, 1), ("min", -80, -100, 0.2), ("max", 3, None, 0)],
    ],
)
def test_primal_gap(sense: str, objective: int | None, best: int | None, gap: float) -> None:
    """|100 - 80| / 100 = 0.2, from either side: to be minimised, 125 against 100 is 25 / 125."""
    [scored] = score_rows([row("a", "s", 1, objective, None, sense=sense)], {"a": Known(best, None)})
    assert scored.gap == pytest.approx(gap)


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
    [scored] = score_rows([one], {"a": Known(100, 100)})
    assert scored.primal_s == pytest.approx(seconds)
    assert scored.primal_dual_s == pytest.approx(seconds)


def test_without_a_bound_the_gap_to_it_is_whole() -> None:
    """The best value from the start, and no bound until the limit."""
    one = row("a", "highs", 10, 100, None, trajectory=((0, 100, None, None, None),))
    [scored] = score_rows([one], {"a": Known(100, None)})
    assert (scored.primal_s, scored.primal_dual_s) == (0, 10)


def test_course() -> None:
    """The mean gap to the best known value: 100 % until a value is found, then what it lacks; the last at the limit."""
    one = row("a", "highs", 10, 100, 100, trajectory=((2, 200, None, None, None), (10, 100, 100, None, None)))
    curve = curves_of([one], "course")["highs"]
    assert curve[-1] == (10, 0)
    for at, gap in curve[:-1]:
        assert gap == pytest.approx(100 if at < 2 else 50), at


def test_performance_profile() -> None:
    """
    Four cases. A: 1, 4, 10, none. B: 2, 2, none, none. Best: 1, 2, 10, none.

    Ratios of A: 1, 2, 1, so 2 of 4 at 1 and 3 of 4 at 2; of B: 2, 1, so 1 of 4 at 1 and 2 of 4 at 2. No clock tells
    times below a millisecond apart.
    """

    def profile(**seconds: list[float | None]) -> dict[str, list[tuple[float, float]]]:
        rows = []
        for name, times in seconds.items():
            for i, wall in enumerate(times):
                done = (10, 5, 4) if wall is None else (wall, 5, 5)
                rows.append(row(f"i{i}", name, *done, verdict="timeout" if wall is None else "solved"))
        return curves_of(rows, "profile")

    found = profile(A=[1, 4, 10, None], B=[2, 2, None, None])
    assert found == {"A": [(1.0, 0.5), (2.0, 0.75)], "B": [(1.0, 0.25), (2.0, 0.5)]}
    assert profile(A=[None]) == {"A": [(1.0, 0.0)]}
    assert profile(A=[0.0], B=[0.0005]) == {"A": [(1.0, 1.0)], "B": [(1.0, 1.0)]}
    assert curves_of(ROWS, "gaps")["fast"] == [(0.0, 0.5), (20.0, 1.0)]  # of a and b, which both have run


def test_best_of_every_instance_by_hand() -> None:
    """
    On a both have 100, fast after 1 s, and both prove it; on b slow alone, though the bound says 80 to 100.

    A liar's value and bound count for nothing, but it is named.
    """
    liar = row("a", "liar", 0.1, 1, 1, verdict="fail")
    tables = tables_of([*ROWS, liar], {"b": Known(90, 80)})
    assert tables["best"].rows == (
        ("a", 100, 100, 100, 0.0, 2, 2, "fast", 1.0),
        ("b", 90, 100, 100, 0.0, 1, 1, "slow", 7.0),
        ("c", 9, 9, 9, 0.0, 1, 1, "fast", 1.0),
    )
    assert tables["wrong"].rows == (("a", "liar", 0, "fail", "contradicts what is known"),)


def test_the_best_of_an_instance_whose_first_case_has_no_answer() -> None:
    """An abort states no sense; a model to be minimised keeps its own, and value and bound are 3 / 8 apart."""
    gone = row("a", "a-gone", 1, None, None, verdict="abort").model_copy(
        update={"answer": CaseAnswer(status="crashed")}
    )
    tables = tables_of([gone, row("a", "b", 1, 9, 3), row("a", "c", 1, 8, 5)])
    [line] = tables["best"].rows
    assert line[2:5] == (8, 5, 37.5)
    [first] = [line for line in tables["instances"].rows if line[1] == "b"]
    assert first[5:8] == (9, 9, 3)


def test_known_values_move_gaps() -> None:
    """If 50 is known of b, 100 is half way and 125 at 60 %."""
    found = {s.solver: s.gap for s in score_rows(ROWS, {"b": Known(50, 40)}) if s.row.case.instance == "b"}
    assert found == {"fast": pytest.approx(0.6), "slow": pytest.approx(0.5)}


def test_what_is_wrong_counts_as_nothing() -> None:
    """Neither its value nor its time helps it."""
    wrong = row("a", "liar", 0.1, 1, 1, verdict="fail")
    [scored] = score_rows([wrong], {"a": Known(100, 100)})
    assert (scored.solved, scored.gap, scored.primal_s, scored.best) == (False, 1.0, 10.0, 100)
    assert tables_of([wrong], {"a": Known(100, 100)})["verdicts"].rows == (("liar", 1, 0, 0, 0, 0, 1, 0, 0),)


def test_unsupported_cases_enter_no_mean() -> None:
    """What one solver cannot take is compared for none; one that can take nothing hides no other."""
    cannot = {"verdict": "unsupported", "trajectory": (), "status": "unsupported", "message": "'x' is continuous"}
    able = [("a", "able", 1), ("a", "other", 2), ("b", "able", 1)]
    rows = [row(*case, 10, 10, verdict="solved") for case in able]
    rows += [row(name, solver, 1, None, None, **cannot) for name, solver in (("b", "other"), ("a", "none"))]
    tables = tables_of(rows)
    assert [line[:2] for line in tables["summary"].rows] == [("able", 1), ("other", 1)]
    gaps = {(line[0], line[1]): line[8] for line in tables["instances"].rows}
    assert (gaps["b", "other"], gaps["a", "able"]) == (None, 0.0)
    cells = {(line[0], line[1]): line[14:17] for line in tables["cases"].rows}
    assert cells[("b", "other")] == (None, None, None)
    assert [line[3] for line in tables["wrong"].rows] == ["unsupported", "unsupported"]


def test_a_solver_without_a_trajectory_has_no_integrals() -> None:
    """Pulp-scip tells nothing before its end, so there is no area; highs has one."""
    table = tables_of([row("a", solver, 1, 10, 10, verdict="solved") for solver in ("highs", "pulp-scip")])["summary"]
    areas = [table.columns.index("primal s"), table.columns.index("primal-dual s")]
    found = {line[0]: [line[i] for i in areas] for line in table.rows}
    assert found == {"highs": [1.0, 1.0], "pulp-scip": [None, None]}
    assert "| - |" in table.markdown()


def test_the_rank_is_by_what_the_page_names() -> None:
    """Gap, then PAR10, then the primal-dual integral, each as the table shows it; the title says so."""
    walls = {"b-slow": 5, "c-fast": 4, "pulp-scip": 4}
    rows = [row("a", "x-gap", 1, 11, 10), *(row("a", name, s, 10, 10, verdict="solved") for name, s in walls.items())]
    report = reported(rows)
    [summary] = [table for table in report.tables if table.name == "summary"]
    assert [line[0] for line in summary.rows] == ["c-fast", "pulp-scip", "b-slow", "x-gap"]
    assert "best first: by gap %, then PAR10 s, then primal-dual s" in summary.title
    assert "by gap %, then PAR10 s, then primal-dual s" in report.markdown().replace("\n", " ")


def test_settings_distinguish_solvers() -> None:
    """One solver with two limits is two columns of a report."""
    rows = [row("a", "fast", 1, 100, 100, time_limit_s=limit) for limit in (10.0, 60.0)]
    assert [scored.solver for scored in score_rows(rows, {})] == ["fast 10 s x 1", "fast 60 s x 1"]


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
    table = tables_of(FIELD, KNOWN)["seconds"]
    assert table.columns == ("instance", "seed", "pulp-cbc", "highs")
    assert [line[2:] for line in table.rows] == [(7.0, 1.0), (3.0, "timeout"), ("unsupported", 2.0)]


def test_scaled_means_with_both_shifts() -> None:
    """
    By hand on the instances a and b, which both take.

    Shift 1: highs sqrt(2 x 11) - 1 = 3.690, CBC sqrt(8 x 4) - 1 = 4.657, virtual best sqrt(2 x 4) - 1 = 1.828. Shift
    10: sqrt(11 x 20) - 10 = 4.832, sqrt(17 x 13) - 10 = 4.866, sqrt(11 x 13) - 10 = 1.958.
    """
    table = tables_of([one for one in FIELD if one.case.instance != "c"], KNOWN)["scaled"]
    assert table.columns == ("solver", "proven", "s, shift 1", "scaled, shift 1", "s, shift 10", "scaled, shift 10")
    expected = {
        "virtual best": (2, 1.828, 0.4955, 1.958, 0.4052),
        "highs": (1, 3.690, 1, 4.832, 1),
        "pulp-cbc": (2, 4.657, 1.262, 4.866, 1.007),
    }
    assert [line[0] for line in table.rows] == list(expected)
    for line in table.rows:
        assert line[1:] == pytest.approx(expected[str(line[0])], abs=1e-3)


def test_rows_for_ipet() -> None:
    """Its keys and its words of status; what could not run is missing."""
    table = tables_of(FIELD, KNOWN)["ipet"]
    rows = [dict(zip(table.columns, line, strict=True)) for line in table.rows]
    assert [line["Status"] for line in rows] == ["ok", "solved_not_verified", "timelimit", "better", "ok", "missing"]
    del rows[2]["PrimalIntegral"]
    stated = {"ProblemName": "b", "Solver": "highs", "Settings": "seed-0", "Status": "timelimit", "Objsense": 1}
    assert rows[2] == stated | {"SolvingTime": 10, "TimeLimit": 10, "PrimalBound": 9, "DualBound": 4, "OptVal": 8}


def test_versions_and_options(tmp_path: Path) -> None:
    """Of the last run that states them; CBC's own version, not PuLP's."""
    (tmp_path / "tiny.gap").write_text("1 2\n 3 4\n 1 1\n 2\n")
    solvers = ["highs", "pulp-cbc"]
    plan = plan_cases([str(tmp_path / "tiny.gap")], solvers, time_limit_s=10, seeds=[0], threads=1)
    run_cases(plan.cases, tmp_path / "out")
    [table] = [one for one in make_report(tmp_path / "out", plots=False).tables if one.name == "settings"]
    rows = {line[0]: line[1:] for line in table.rows}
    assert rows["highs"][0] == f"highspy {version('highspy')}"
    assert rows["pulp-cbc"][0].startswith("CBC 2.")
    assert "preprocess off" in rows["pulp-cbc"][1]


def test_tables_as_text() -> None:
    """CSV keeps all digits, Markdown what people read; unknown is empty, and a dash."""
    table = Table("t", "T", ("name", "x"), (("a|b", 1234.5678), ("c", None), ('d"', 12345)))
    assert table.csv() == 'name,x\na|b,1234.5678\nc,\n"d""",12345\n'
    assert table.markdown().splitlines()[2:] == ["| a\\|b | 1,235 |", "| c | - |", '| d" | 12,345 |']


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Journal(tmp_path / "out") as journal:
        for one in ROWS:
            journal.add(one)
    return tmp_path / "out"


def test_a_report_is_written(folder: Path) -> None:
    """A page, all tables, and plots where they can be drawn; the same rows give the same bytes."""
    names = {path.name for path in write_report(make_report(folder, {}), folder / "report")}
    assert {"report.md", "summary.csv", "comparison.csv", "instances.csv", "cases.csv", "profile.csv"} <= names
    page = (folder / "report" / "report.md").read_text()
    for words in ("shift 1 s", "5 cases, 4 of them", "None of all cases.", "| fast | 2 | 1 |"):
        assert words in page
    assert page.index("| slow | 2 | 2 |") < page.index("| fast | 2 | 1 |")
    before = {path.name: path.read_bytes() for path in (folder / "report").iterdir()}
    write_report(make_report(folder, {}), folder / "report")
    assert {path.name: path.read_bytes() for path in (folder / "report").iterdir()} == before


def test_a_brief_report_is_small_and_whole(folder: Path) -> None:
    """The page links to nothing that is not there; all cases are."""
    out = folder / "brief"
    names = {path.name for path in write_report(make_report(folder, {}), out, brief=True)}
    assert {"report.md", "cases.csv"} <= names
    assert all(name.endswith(".svg") for name in names - {"report.md", "cases.csv"})
    links = re.findall(r"\]\(([^)]*)\)", (out / "report.md").read_text())
    assert set(links) <= names
    assert (out / "cases.csv").read_text().count("\n") == 1 + len(ROWS)


@pytest.mark.skipif(not can_draw(), reason="needs matplotlib")
def test_many_solvers_do_not_crowd_out_the_picture() -> None:
    """Six and the baseline by name, the others counted."""
    rows = [row("a", f"s{i:02}", 1 + i / 10, 5, 5, verdict="solved") for i in range(40)]
    drawn = render(reported(rows, baseline="s30").figures[0], "svg")
    for name in (*(f"s0{i}" for i in range(6)), "s30", "33 others"):
        assert f">{name}</text>".encode() in drawn
    assert b">s06</text>" not in drawn


@pytest.mark.skipif(not can_draw(), reason="needs matplotlib")
def test_plots_are_drawn(folder: Path) -> None:
    """SVG and PDF of each, with both solvers' names in the legend."""
    out = folder / "report"
    write_report(make_report(folder, {}, plots=True), out)
    drawn = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix in (".svg", ".pdf")}
    assert sorted(drawn) == sorted(f"{name}.{end}" for name in ("profile", "gaps", "course") for end in ("svg", "pdf"))
    assert drawn["profile.svg"].startswith(b"<?xml")
    assert drawn["profile.pdf"].startswith(b"%PDF")
    assert b">fast</text>" in drawn["profile.svg"]
    assert b">slow</text>" in drawn["profile.svg"]


def test_without_plots_the_rest_is_there(folder: Path) -> None:
    names = {path.name for path in write_report(make_report(folder, {}, plots=False), folder / "report")}
    assert not {name for name in names if name.endswith((".svg", ".pdf"))}


def test_a_wrong_baseline_is_named(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"'none' is not a solver of .*fast, slow"):
        make_report(folder, {}, baseline="none")
    with pytest.raises(BadInput, match="no such file"):
        make_report(folder / "nowhere", {})
