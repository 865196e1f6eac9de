"""Reports and checks go by what a run knew, and leave out what a solver cannot take."""

import json
from pathlib import Path

import pytest
from test_benchmark_report import row, tables_of

from placeopt.benchmark import (
    CaseAnswer,
    Journal,
    Row,
    judge,
    make_report,
    plan_cases,
    read_journal,
    recheck,
    run_cases,
)
from placeopt.cli.run import run
from placeopt.formats import Known

CONTINUOUS = """\
NAME relaxed
ROWS
 N cost
 G least
COLUMNS
 x cost 1
 x least 1
RHS
 RHS least 3
BOUNDS
 UP BND x 8
ENDATA
"""
INTEGER = CONTINUOUS.replace("COLUMNS\n", "COLUMNS\n M1 'MARKER' 'INTORG'\n").replace(
    "RHS\n RHS", " M2 'MARKER' 'INTEND'\nRHS\n RHS"
)


def unsupported(instance: str, solver: str) -> Row:
    """Return the row of a case that the solver cannot take."""
    made = row(instance, solver, wall=1, objective=None, bound=None, verdict="unsupported", trajectory=())
    answer = CaseAnswer(status="unsupported", message="Unsupported: variable 'x' is continuous")
    return made.model_copy(update={"answer": answer})


@pytest.fixture
def two_folders(tmp_path: Path) -> tuple[Path, Path]:
    """A folder of instances with known values of its own, and results of a run that went by them."""
    instances = tmp_path / "mine"
    instances.mkdir()
    (instances / "tiny.gap").write_text("1 2\n 3 4\n 1 1\n 2\n")
    (instances / "tiny.test").write_text("tiny.gap\n")
    (instances / "best.solu").write_text("=best= tiny 5\n")
    out = tmp_path / "out"
    options = ["--set", "tiny", "--solvers", "highs", "--time-limit", "20", "--instances", str(instances)]
    assert run(["bench", "run", *options, "--out", str(out), "--quiet"]) == 1  # 5 cannot be: 7 is optimal
    return instances, out


def test_report_and_check_use_what_the_run_knew(
    two_folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --instances both go by the run's own values, wherever they are called from."""
    instances, out = two_folders
    assert judge(read_journal(out)[1].popitem()[1].answer, Known(5, None)) == "fail"
    monkeypatch.chdir(out.parent)
    capsys.readouterr()
    assert run(["bench", "report", str(out), "--no-plots", "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert tables["instances"][0]["best known"] == 5
    assert run(["bench", "check", str(out), "--json"]) == 1
    assert "contradicted by the known value 5" in capsys.readouterr().out
    (instances / "best.solu").write_text("=opt= tiny 7\n")  # what was known then is what the rows were judged by
    assert run(["bench", "check", str(out), "--quiet"]) == 1
    assert (
        run(["bench", "check", str(out), "--instances", str(instances), "--quiet"]) == 0
    )  # a file that is named counts


def test_check_updates_the_file_that_the_run_went_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--update writes into the run's own file of known values unless another is named."""
    instances = tmp_path / "mine"
    instances.mkdir()
    (instances / "tiny.gap").write_text("1 2\n 3 4\n 1 1\n 2\n")
    out = tmp_path / "out"
    options = ["--set", str(instances / "tiny.gap"), "--solvers", "highs", "--time-limit", "20"]
    assert run(["bench", "run", *options, "--instances", str(instances), "--out", str(out), "--quiet"]) == 0
    monkeypatch.chdir(out)
    assert run(["bench", "check", str(out), "--update"]) == 0
    assert f"written to{instances / 'best.solu'}" in "".join(capsys.readouterr().out.split("\n")).replace(
        "written to ", "written to"
    )
    assert (instances / "best.solu").read_text().startswith("=opt= tiny 7")
    assert not (out / "instances").exists()


def test_rows_carry_what_was_known(tmp_path: Path) -> None:
    """In the journal; nothing known is stated too, and rows of older journals say nothing."""
    (tmp_path / "tiny.gap").write_text("1 2\n 3 4\n 1 1\n 2\n")
    plan = plan_cases([str(tmp_path / "tiny.gap")], ["highs"], time_limit_s=20, seeds=[0], threads=1)
    [made] = run_cases(plan.cases, tmp_path / "out")
    assert made.known is not None
    assert made.known.model_dump(exclude_defaults=True) == {}
    [checked] = recheck(tmp_path / "out")
    assert checked.faults == ()
    assert judge(made.answer, Known(5, 5)) == "fail"


def test_a_model_that_a_solver_cannot_take_is_unsupported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No abort, no exit code 1; the reason is printed."""
    (tmp_path / "relaxed.mps").write_text(CONTINUOUS)
    (tmp_path / "whole.mps").write_text(INTEGER)
    sets = f"{tmp_path / 'relaxed.mps'},{tmp_path / 'whole.mps'}"
    out = tmp_path / "out"
    options = ["--set", sets, "--solvers", "highs,cpsat", "--time-limit", "20", "--instances", str(tmp_path)]
    assert run(["bench", "run", *options, "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "unsupported" in text
    assert "'x' is continuous" in text
    assert run(["bench", "run", *options, "--out", str(out), "--json"]) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert (verdicts["highs"]["unsupported"], verdicts["highs"]["solved"] + verdicts["highs"]["ok"]) == (0, 2)
    counts = verdicts["cpsat"]
    assert (counts["unsupported"], counts["abort"], counts["solved"]) == (1, 0, 1)
    report = make_report(out, plots=False)
    [summary] = [table for table in report.tables if table.name == "summary"]
    gap = summary.columns.index("gap %")
    assert [(line[1], line[gap]) for line in summary.rows] == [(1, 0.0), (1, 0.0)]


def test_unsupported_cases_enter_no_mean() -> None:
    """What one solver cannot take is compared for none; one that can take nothing hides no other."""
    rows = [
        row("a", "able", wall=1, objective=10, bound=10, verdict="solved"),
        row("a", "other", wall=2, objective=10, bound=10, verdict="solved"),
        row("b", "able", wall=1, objective=10, bound=10, verdict="solved"),
        unsupported("b", "other"),
        unsupported("a", "none"),
    ]
    tables = tables_of(rows)
    assert [line[:2] for line in tables["summary"].rows] == [("able", 1), ("other", 1)]
    gaps = {(line[0], line[1]): line[8] for line in tables["instances"].rows}
    assert gaps[("b", "other")] is None
    assert gaps[("a", "able")] == 0.0
    cells = {(line[0], line[1]): line[14:17] for line in tables["cases"].rows}
    assert cells[("b", "other")] == (None, None, None)
    assert [line[3] for line in tables["wrong"].rows] == ["unsupported", "unsupported"]


def test_the_best_of_an_instance_whose_first_case_has_no_answer() -> None:
    """An abort states no sense; a model to be minimised keeps its own."""
    gone = row("a", "a-gone", wall=1, objective=None, bound=None, verdict="abort")
    gone = gone.model_copy(update={"answer": CaseAnswer(status="crashed")})
    rows = [gone, row("a", "b", wall=1, objective=9, bound=3), row("a", "c", wall=1, objective=8, bound=5)]
    [line] = tables_of(rows)["best"].rows
    assert line[2:4] == (8, 5)
    [first] = [line for line in tables_of(rows)["instances"].rows if line[1] == "b"]
    assert first[5:8] == (9, 9, 3)


def test_a_solver_without_a_trajectory_has_no_integrals() -> None:
    """Pulp-scip tells nothing before its end, so there is no area; highs has one."""
    rows = [
        row("a", "highs", wall=1, objective=10, bound=10, verdict="solved"),
        row("a", "pulp-scip", wall=1, objective=10, bound=10, verdict="solved"),
    ]
    table = tables_of(rows)["summary"]
    by_name = {line[0]: line for line in table.rows}
    primal, both = table.columns.index("primal s"), table.columns.index("primal-dual s")
    assert (by_name["pulp-scip"][primal], by_name["pulp-scip"][both]) == (None, None)
    assert (by_name["highs"][primal], by_name["highs"][both]) == (1.0, 1.0)
    assert "| - |" in table.markdown()


def test_the_rank_is_by_what_the_page_names(tmp_path: Path) -> None:
    """Gap, then PAR10, then the primal-dual integral, each as the table shows it; the title says so."""
    rows = [
        row("a", "x-gap", wall=1, objective=11, bound=10),
        row("a", "b-slow", wall=5, objective=10, bound=10, verdict="solved"),
        row("a", "c-fast", wall=4, objective=10, bound=10, verdict="solved"),
        row("a", "pulp-scip", wall=4, objective=10, bound=10, verdict="solved"),
    ]
    with Journal(tmp_path / "out") as journal:
        for one in rows:
            journal.add(one)
    report = make_report(tmp_path / "out", {}, plots=False)
    [summary] = [table for table in report.tables if table.name == "summary"]
    names = [line[0] for line in summary.rows]
    assert names == ["c-fast", "pulp-scip", "b-slow", "x-gap"]
    assert "best first: by gap %, then PAR10 s, then primal-dual s" in summary.title
    assert "by gap %, then PAR10 s, then primal-dual s" in report.markdown().replace("\n", " ")


def test_what_the_solver_process_refuses_is_unsupported_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CBC writes eight digits: a variable beyond them is refused in its process."""
    (tmp_path / "large.mps").write_text(INTEGER.replace("UP BND x 8", "UP BND x 500000000"))
    plan = plan_cases([str(tmp_path / "large.mps")], ["pulp-cbc"], time_limit_s=20, seeds=[0], threads=1)
    [made] = run_cases(plan.cases, tmp_path / "out")
    assert (made.verdict, "eight digits" in made.answer.message) == ("unsupported", True)
