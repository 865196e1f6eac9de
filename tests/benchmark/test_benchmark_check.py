"""Checks read values again, and go by what a run knew; what a solver cannot take is no fault."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from test_benchmark_report import row

from placeopt import BadInput
from placeopt.benchmark import (
    Journal,
    Known,
    RecheckedRow,
    improve_known,
    judge,
    plan_cases,
    read_journal,
    read_solu,
    recheck,
    run_cases,
    write_solu,
)
from placeopt.cli.run import run
from placeopt.view import View

GAP = "1 2\n 3 4\n 1 1\n 2\n"
"""One agent, two items, 7."""
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


def stored(folder: Path, values: list[int], objective: int, bound: int) -> Path:
    path, out = folder / "tiny.gap", folder / "out"
    (out / "solutions").mkdir(parents=True)
    path.write_text(GAP)
    (out / "solutions" / "x.json").write_text(json.dumps({"values": values}))
    fields = {"path": str(path), "sha256": sha256(GAP.encode()).hexdigest(), "solution": "solutions/x.json"}
    with Journal(out) as journal:
        journal.add(row("tiny", "highs", 1, objective, bound, verdict="solved", **fields))
    return out


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
    out = stored(tmp_path, [1, 1], 7, 7)
    assert [one.faults for one in recheck(out, {})] == [()]
    assert "contradicted by the known value 5" in recheck(out, {"tiny": Known(5, None)})[0].faults[0]
    (out / "solutions" / "x.json").write_text("{}")
    assert "no list of numbers" in recheck(out, {})[0].faults[0]
    (out / "solutions" / "x.json").unlink()
    assert "cannot be read" in recheck(out, {})[0].faults[0]
    (tmp_path / "tiny.gap").write_text(GAP.replace("3 4", "3 5"))
    assert "has changed since" in recheck(out, {})[0].faults[0]


def test_only_better_values_enter() -> None:
    """And never one that another row's bound contradicts."""
    checked = [RecheckedRow(row("x", "s", 1, 12, 10), ())]
    assert improve_known({"x": Known(11, 10)}, checked) == {"x": Known(11, 10)}
    with pytest.raises(BadInput, match="x: value 12 lies below bound 13"):
        improve_known({"x": Known(None, 13)}, checked)


def test_the_cost_of_a_round_enters_where_its_value_is_proven() -> None:
    """As that of NAME.cost, to be minimised; a plan of lower value may cost less, and says nothing."""

    def plan(bound: int, cost: int, cost_bound: int) -> list[RecheckedRow]:
        fields = {"status": "feasible", "sense": "max", "cost": cost, "cost_bound": cost_bound}
        return [RecheckedRow(row("x", "auto", 1, 12, bound, **fields), ())]

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
    assert improve_known({"tiny": Known(8, 5)}, right) == {"tiny": Known(7, 7)}
    write_solu(tmp_path / "best.solu", improve_known({}, value_only))
    assert "=opt=" not in (tmp_path / "best.solu").read_text()
    write_solu(tmp_path / "best.solu", improve_known(read_solu(tmp_path / "best.solu"), right))
    assert (tmp_path / "best.solu").read_text().startswith("=opt= tiny 7  # highs, 10 s")


def test_report_and_check_use_what_the_run_knew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --instances both go by the run's own values, wherever they are called from."""
    instances, out = tmp_path / "mine", tmp_path / "out"
    instances.mkdir()
    for name, text in (("tiny.gap", GAP), ("tiny.test", "tiny.gap\n"), ("best.solu", "=best= tiny 5\n")):
        (instances / name).write_text(text)
    options = ["--set", "tiny", "--solvers", "highs", "--case-limit", "20", "--instances", str(instances)]
    assert run(["bench", "run", *options, "--out", str(out)]) == 1  # 5 cannot be: 7 is optimal
    assert "contradicts what is known" in capsys.readouterr().out
    assert judge(read_journal(out)[1].popitem()[1].answer, Known(5, None)) == "fail"
    monkeypatch.chdir(tmp_path)
    assert run(["bench", "report", str(out), "--json"]) == 0
    view = View.model_validate_json(capsys.readouterr().out)
    assert view.table("By instance and solver").rows[0][4] == 5
    assert run(["bench", "report", str(out), "--check", "--json"]) == 1
    view = View.model_validate_json(capsys.readouterr().out)
    assert (view.verdict, view.figure("wrong")) == ("bad", 1)
    assert "contradicted by the known value 5" in str(view.table("Wrong").rows[0][-1])
    (instances / "best.solu").write_text("=opt= tiny 7\n")  # what was known then is what the rows were judged by
    assert run(["bench", "report", str(out), "--check", "--quiet"]) == 1
    assert (
        run(["bench", "report", str(out), "--check", "--instances", str(instances), "--quiet"]) == 0
    )  # a named file counts


def test_check_updates_the_file_that_the_run_went_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--update writes into the run's own file of known values unless another is named."""
    instances, out = tmp_path / "mine", tmp_path / "out"
    instances.mkdir()
    (instances / "tiny.gap").write_text(GAP)
    options = ["--set", str(instances / "tiny.gap"), "--solvers", "highs", "--case-limit", "20"]
    assert run(["bench", "run", *options, "--instances", str(instances), "--out", str(out), "--quiet"]) == 0
    known = read_journal(out)[1].popitem()[1].known
    assert known is not None  # nothing known is stated too
    assert known.model_dump(exclude_defaults=True) == {}
    monkeypatch.chdir(out)
    capsys.readouterr()
    assert run(["bench", "report", str(out), "--update"]) == 0
    assert f"writtento{instances / 'best.solu'}" in "".join(capsys.readouterr().out.split())
    assert (instances / "best.solu").read_text().startswith("=opt= tiny 7")
    assert not (out / "instances").exists()


def test_a_model_that_a_solver_cannot_take_is_unsupported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No abort, no exit code 1; the reason is printed. CBC writes 8 digits: its process refuses more."""
    large = INTEGER.replace("UP BND x 8", "UP BND x 500000000")
    for name, text in (("relaxed", CONTINUOUS), ("whole", INTEGER), ("large", large)):
        (tmp_path / f"{name}.mps").write_text(text)
    options = ["--set", f"{tmp_path / 'relaxed.mps'},{tmp_path / 'whole.mps'}", "--solvers", "highs,cpsat"]
    options += ["--case-limit", "20", "--instances", str(tmp_path), "--out", str(tmp_path / "out")]
    assert run(["bench", "run", *options]) == 0
    text = capsys.readouterr().out
    assert "unsupported" in text
    assert "'x' is continuous" in text
    assert run(["bench", "run", *options, "--json"]) == 0
    table = View.model_validate_json(capsys.readouterr().out).table("Verdicts")
    names = [column.name for column in table.columns]
    verdicts = {line[0]: dict(zip(names, line, strict=True)) for line in table.rows}
    assert (verdicts["highs"]["unsupported"], verdicts["highs"]["solved"] + verdicts["highs"]["ok"]) == (0, 2)
    assert [verdicts["cpsat"][name] for name in ("unsupported", "abort", "solved")] == [1, 0, 1]
    assert run(["bench", "report", str(tmp_path / "out"), "--json"]) == 0
    summary = View.model_validate_json(capsys.readouterr().out).table("Solvers")
    gap = [column.name for column in summary.columns].index("gap")
    assert [(line[1], line[gap]) for line in summary.rows] == [(1, 0.0), (1, 0.0), (1, None)]
    plan = plan_cases([str(tmp_path / "large.mps")], ["pulp-cbc"], time_limit_s=20, seeds=[0], threads=1)
    [made] = run_cases(plan.cases, tmp_path / "more")
    assert (made.verdict, "8 digits" in made.answer.message) == ("unsupported", True)
