"""From rows to tables and files; every figure of a small benchmark is worked out by hand here."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from placeopt import BadInput
from placeopt.benchmark import (
    Case,
    CaseAnswer,
    Journal,
    RecheckedRow,
    Row,
    TrajectoryPoint,
    improve_known,
    make_report,
    recheck,
    score_rows,
    write_report,
)
from placeopt.formats import Known, Table, can_draw, read_solu, render, write_solu

GAP = "1 2\n 3 4\n 1 1\n 2\n"
"""One agent, two items, 7."""


def row(
    instance: str,
    solver: str,
    *,
    wall: float,
    objective: int | None,
    bound: int | None,
    verdict: str = "timeout",
    path: Path | None = None,
    sha: str = "0" * 64,
    trajectory: tuple[TrajectoryPoint, ...] | None = None,
    **fields: object,
) -> Row:
    """Build a row of a model to be minimised, limit 10 s; its trajectory is one point at its end."""
    case = Case(
        instance=instance,
        path=str(path or f"{instance}.gap"),
        kind="linear",
        sha256=sha,
        solver=solver,
        seed=0,
        time_limit_s=10.0,
        threads=1,
    )
    status = "optimal" if objective is not None and objective == bound else "feasible"
    answer = CaseAnswer(status=status, sense="min", objective=objective, bound=bound, wall_s=wall, cpu_s=2 * wall)
    return Row.model_validate(
        {
            "run": 1,
            "case": case,
            "answer": answer,
            "verdict": verdict,
            "trajectory": trajectory if trajectory is not None else ((wall, objective, bound, None, None),),
            "began": "now",
            "load_before": 0.5,
            "load_after": 1.5,
            **fields,
        }
    )


ROWS = (
    row("a", "fast", wall=1, objective=100, bound=100, verdict="ok"),
    row("a", "slow", wall=3, objective=100, bound=100, verdict="ok"),
    row("b", "fast", wall=10, objective=125, bound=80),
    row("b", "slow", wall=7, objective=100, bound=100, verdict="solved"),
    row("c", "fast", wall=1, objective=9, bound=9, verdict="ok"),
)


def tables_of(rows: Iterable[Row], known: Mapping[str, Known] | None = None, **fields: Any) -> dict[str, Table]:
    """Return the tables of the report of a benchmark with these rows."""
    with TemporaryDirectory() as folder:
        with Journal(Path(folder)) as journal:
            for one in rows:
                journal.add(one)
        report = make_report(Path(folder), known or {}, plots=False, **fields)
    return {table.name: table for table in report.tables}


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


def test_best_of_every_instance_by_hand() -> None:
    """
    On a both have 100, fast after 1 s, and both prove it; on b slow alone, though the bound says 80 to 100.

    A liar's value and bound count for nothing, but it is named.
    """
    liar = row("a", "liar", wall=0.1, objective=1, bound=1, verdict="fail")
    tables = tables_of([*ROWS, liar], {"b": Known(90, 80)})
    assert tables["best"].rows == (
        ("a", 100, 100, 100, 0.0, 2, 2, "fast", 1.0),
        ("b", 90, 100, 100, 0.0, 1, 1, "slow", 7.0),
        ("c", 9, 9, 9, 0.0, 1, 1, "fast", 1.0),
    )
    assert tables["wrong"].rows == (("a", "liar", 0, "fail", "contradicts what is known"),)


def test_known_values_move_gaps() -> None:
    """If 50 is known of b, 100 is half way and 125 at 60 %."""
    found = {s.solver: s.gap for s in score_rows(ROWS, {"b": Known(50, 40)}) if s.row.case.instance == "b"}
    assert found == {"fast": pytest.approx(0.6), "slow": pytest.approx(0.5)}


def test_what_is_wrong_counts_as_nothing() -> None:
    """Neither its value nor its time helps it."""
    wrong = row("a", "liar", wall=0.1, objective=1, bound=1, verdict="fail")
    [scored] = score_rows([wrong], {"a": Known(100, 100)})
    assert (scored.solved, scored.gap, scored.primal_s, scored.best) == (False, 1.0, 10.0, 100)
    assert tables_of([wrong], {"a": Known(100, 100)})["verdicts"].rows == (("liar", 1, 0, 0, 0, 0, 1, 0, 0),)


def test_settings_distinguish_solvers() -> None:
    """One solver with two limits is two columns of a report."""
    longer = ROWS[0].case.model_copy(update={"time_limit_s": 60.0})
    rows = [ROWS[0], ROWS[0].model_copy(update={"case": longer})]
    assert [scored.solver for scored in score_rows(rows, {})] == ["fast 10 s x 1", "fast 60 s x 1"]


def test_tables_as_text() -> None:
    """CSV keeps all digits, Markdown what people read; unknown is empty, and a dash."""
    table = Table("t", "T", ("name", "x"), (("a|b", 1234.5678), ("c", None), ('d"', 12345)))
    assert table.csv() == 'name,x\na|b,1234.5678\nc,\n"d""",12345\n'
    assert table.markdown().splitlines()[2:] == ["| a\\|b | 1,235 |", "| c | - |", '| d" | 12,345 |']


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark's folder with the rows above."""
    with Journal(tmp_path / "out") as journal:
        for one in ROWS:
            journal.add(one)
    return tmp_path / "out"


def test_a_report_is_written(folder: Path) -> None:
    """A page, all tables, and plots where they can be drawn; the same rows give the same bytes."""
    report = make_report(folder, {})
    names = {path.name for path in write_report(report, folder / "report")}
    assert {"report.md", "summary.csv", "comparison.csv", "instances.csv", "cases.csv", "profile.csv"} <= names
    page = (folder / "report" / "report.md").read_text()
    assert "shift 1 s" in page
    assert "5 cases, 4 of them" in page
    assert page.index("| slow | 2 | 2 |") < page.index("| fast | 2 | 1 |")
    assert "None of all cases." in page
    assert "| fast | 2 | 1 |" in page
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
def test_many_solvers_do_not_crowd_out_the_picture(tmp_path: Path) -> None:
    """Six and the baseline by name, the others counted."""
    with Journal(tmp_path) as journal:
        for i in range(40):
            journal.add(row("a", f"s{i:02}", wall=1 + i / 10, objective=5, bound=5, verdict="solved"))
    profile = make_report(tmp_path, {}, baseline="s30").figures[0]
    drawn = render(profile, "svg")
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
    """matplotlib is an extra."""
    names = {path.name for path in write_report(make_report(folder, {}, plots=False), folder / "report")}
    assert not {name for name in names if name.endswith((".svg", ".pdf"))}


def test_a_wrong_baseline_is_named(folder: Path) -> None:
    """With those that there are."""
    with pytest.raises(BadInput, match=r"'none' is not a solver of .*fast, slow"):
        make_report(folder, {}, baseline="none")
    with pytest.raises(BadInput, match="no such file"):
        make_report(folder / "nowhere", {})


def stored(tmp_path: Path, values: list[int], objective: int, bound: int, **fields: object) -> Path:
    """Store one row with a solution."""
    import hashlib

    path = tmp_path / "tiny.gap"
    tmp_path.mkdir(exist_ok=True)
    path.write_text(GAP)
    out = tmp_path / "out"
    (out / "solutions").mkdir(parents=True)
    (out / "solutions" / "x.json").write_text(json.dumps({"values": values}))
    sha = hashlib.sha256(GAP.encode()).hexdigest()
    made = row(
        "tiny", "highs", wall=1, objective=objective, bound=bound, path=path, sha=sha, verdict="solved", **fields
    )
    with Journal(out) as journal:
        journal.add(made.model_copy(update={"solution": "solutions/x.json"}))
    return out


def test_check_reads_values_again(tmp_path: Path) -> None:
    """Both items done: 7, as stated; so it enters what is known, as the optimum."""
    checked = recheck(stored(tmp_path, [1, 1], 7, 7), {})
    assert [one.faults for one in checked] == [()]
    assert improve_known({}, checked) == {"tiny": Known(7, 7)}
    assert improve_known({"tiny": Known(8, 5)}, checked) == {"tiny": Known(7, 7)}


@pytest.mark.parametrize(
    ("values", "objective", "bound", "words"),
    [
        ([1, 1], 6, 6, "objective is stated as 6, but it is 7"),
        ([1, 0], 3, 3, "row 1 does not hold"),
        ([2, 1], 10, 7, "variable 0 is 2"),
        ([1], 3, 3, "1 values for 2 variables"),
        ([1, 1], 7, 8, "better than its own bound"),
    ],
)
def test_check_finds_what_is_wrong(tmp_path: Path, values: list[int], objective: int, bound: int, words: str) -> None:
    """Whatever verdict the row has; and it enters nothing."""
    checked = recheck(stored(tmp_path, values, objective, bound), {})
    assert words in "; ".join(checked[0].faults)
    assert improve_known({"tiny": Known(9, 2)}, checked) == {"tiny": Known(9, 2)}


def test_check_finds_what_has_changed(tmp_path: Path) -> None:
    """The instance, the solution, or what is known."""
    out = stored(tmp_path, [1, 1], 7, 7)
    assert "contradicted by the known value 5" in recheck(out, {"tiny": Known(5, None)})[0].faults[0]
    (out / "solutions" / "x.json").write_text("{}")
    assert "no list of numbers" in recheck(out, {})[0].faults[0]
    (out / "solutions" / "x.json").unlink()
    assert "cannot be read" in recheck(out, {})[0].faults[0]
    (tmp_path / "tiny.gap").write_text(GAP.replace("3 4", "3 5"))
    assert "has changed since" in recheck(out, {})[0].faults[0]


def test_only_better_values_enter() -> None:
    """And never one that another row's bound contradicts."""
    checked = recheck_of(row("x", "s", wall=1, objective=12, bound=10))
    assert improve_known({"x": Known(11, 10)}, checked) == {"x": Known(11, 10)}
    with pytest.raises(BadInput, match="x: value 12 lies below bound 13"):
        improve_known({"x": Known(None, 13)}, checked)


def test_the_cost_of_a_round_enters_where_its_value_is_proven() -> None:
    """As that of NAME.cost, to be minimised; a plan of lower value may cost less, and says nothing."""

    def plan(bound: int, cost: int, cost_bound: int) -> list[RecheckedRow]:
        answer = CaseAnswer(status="feasible", objective=12, bound=bound, cost=cost, cost_bound=cost_bound)
        return recheck_of(row("x", "auto", wall=1, objective=12, bound=bound).model_copy(update={"answer": answer}))

    proven, better, short = plan(12, 50, 40), plan(12, 45, 30), plan(13, 20, 10)
    known = improve_known(improve_known({}, proven), better)
    assert known == {"x": Known(12, 12), "x.cost": Known(45, 40)}
    assert "x.cost" not in improve_known({}, short)
    with pytest.raises(BadInput, match=r"x\.cost: value 45 lies below bound 48"):
        improve_known({"x.cost": Known(None, 48)}, better)


def test_an_optimum_needs_a_bound_and_a_refereed_value(tmp_path: Path) -> None:
    """
    A row says that 7 is optimal: it enters as the optimum only if its own solution comes to 7.

    If that does 6, or is not there, neither its value nor its bound does; a value alone is no optimum, and later runs
    never take away what an earlier one has proven.
    """
    right = recheck(stored(tmp_path / "right", [1, 1], 7, 7), {})
    wrong = recheck(stored(tmp_path / "wrong", [1, 0], 7, 7), {})
    value_only = recheck(stored(tmp_path / "value", [1, 1], 7, 5), {})
    assert improve_known({}, right)["tiny"].optimal
    assert improve_known({}, wrong) == {}
    assert not improve_known({}, value_only)["tiny"].optimal
    assert improve_known(improve_known({}, right), value_only) == {"tiny": Known(7, 7)}
    write_solu(tmp_path / "best.solu", improve_known({}, value_only))
    assert "=opt=" not in (tmp_path / "best.solu").read_text()
    write_solu(tmp_path / "best.solu", improve_known(read_solu(tmp_path / "best.solu"), right))
    assert (tmp_path / "best.solu").read_text().startswith("=opt= tiny 7  # highs, 10 s")


def recheck_of(one: Row) -> list[RecheckedRow]:
    """A row that nothing was found wrong with."""
    return [RecheckedRow(one, ())]
