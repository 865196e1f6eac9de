"""Running cases: verdicts, the journal, resuming, and processes that do not end by themselves."""

import json
import threading
from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.benchmark import (
    NAME,
    CampaignProgress,
    Case,
    CaseAnswer,
    Journal,
    Known,
    judge,
    plan_cases,
    read_journal,
    read_sets,
    read_solu,
    run_cases,
)

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "instances"
TINY = "1 2\n 3 4\n 1 1\n 2\n"
"""One agent that can carry both items; 7."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a set ``two`` of an assignment problem and a hand-made round."""
    (tmp_path / "tiny.gap").write_text(TINY)
    (tmp_path / "minsky-1.json").write_bytes((STORED / "hand" / "minsky-1.json").read_bytes())
    (tmp_path / "two.test").write_text("tiny.gap  # by hand\n\nminsky-1.json\n")
    return tmp_path


def planned(folder: Path, solvers: tuple[str, ...] = ("highs", "fcfs"), seeds: tuple[int, ...] = (0,)) -> list[Case]:
    plan = plan_cases(["two"], solvers, time_limit_s=5, seeds=seeds, threads=1, instances=folder)
    return list(plan.cases)


VERDICTS: dict[str, list[tuple[str, int | None, int | None, int | None, int | None]]] = {
    "ok": [("optimal", 5, 5, 5, 5)],
    "solved": [("optimal", 5, 5, 5, 6), ("optimal", 5, 5, None, None), ("infeasible", None, None, None, None)],
    "better": [("optimal", 5, 5, 4, 6), ("feasible", 5, 6, 4, 6)],
    "timeout": [("feasible", 4, 6, 5, 5), ("feasible", 4, None, None, None), ("no_solution", None, 9, 5, 5)],
    "fail": [
        ("optimal", 4, 4, 5, 5),  # a proof that something better disproves
        ("optimal", 6, 6, 5, 5),  # better than what is proven to be the best
        ("feasible", 5, 4, None, None),
        ("infeasible", None, None, 5, None),
    ],
    "abort": [("error", None, None, 5, 5), ("killed", None, None, 5, 5)],
}


@pytest.mark.parametrize(("verdict", "case"), [(name, case) for name, cases in VERDICTS.items() for case in cases])
def test_verdicts(verdict: str, case: tuple[str, int | None, int | None, int | None, int | None]) -> None:
    """In both senses: what is 5 of 5 to be maximised is -5 of -5 to be minimised."""
    status, *figures = case
    for sense, sign in (("max", 1), ("min", -1)):
        objective, bound, value, known_bound = (None if one is None else sign * one for one in figures)
        said = {"status": status, "sense": sense, "objective": objective, "bound": bound}
        assert judge(CaseAnswer.model_validate(said), Known(value, known_bound)) == verdict


def test_what_the_referee_refused_fails() -> None:
    """However good it claims to be."""
    assert judge(CaseAnswer(status="optimal", objective=5, bound=5, refused=("GPU 0 twice",)), Known(5, 5)) == "fail"


def test_sets_are_named_or_listed(folder: Path) -> None:
    """A name, a list and a file are ways to name instances; each counts once."""
    by_name = read_sets(["two"], folder)
    assert [(item.name, item.kind) for item in by_name] == [("tiny", "linear"), ("minsky-1", "placement")]
    assert read_sets(["two", str(folder / "two.test"), str(folder / "tiny.gap")], folder) == by_name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("three", "there are: .*two"),
        ("x.test", "cannot be read"),
        ("y.gap", "no such file"),
        ("bad.test", r"bad.test:1: .*no instance by its name"),
        ("twice.test", "names of instances are unique"),
    ],
)
def test_a_wrong_set_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str) -> None:
    monkeypatch.chdir(folder)
    (folder / "bad.test").write_text("two.test\n")
    (folder / "deep").mkdir()
    (folder / "deep" / "tiny.gap").write_text(TINY)
    (folder / "twice.test").write_text("tiny.gap\ndeep/tiny.gap\n")
    with pytest.raises(BadInput, match=words):
        read_sets([name], folder)


def test_solvers_run_what_is_of_their_kind(folder: Path) -> None:
    """A method takes rounds, a solver takes models; who takes none is named."""
    assert [(case.instance, case.solver) for case in planned(folder)] == [("tiny", "highs"), ("minsky-1", "fcfs")]
    only = plan_cases([str(folder / "tiny.gap")], ["fcfs", "cpsat"], time_limit_s=1, seeds=[0], threads=1)
    assert only.left_out == ("fcfs",)
    with pytest.raises(BadInput, match="none of fcfs takes tiny"):
        plan_cases([str(folder / "tiny.gap")], ["fcfs"], time_limit_s=1, seeds=[0], threads=1)
    with pytest.raises(BadInput, match="'gauss' is not known"):
        plan_cases(["two"], ["gauss"], time_limit_s=1, seeds=[0], threads=1, instances=folder)


def test_rows_record_the_outcome(folder: Path) -> None:
    """In the order of the cases, although two run at a time."""
    out, solved = folder / "out", ("optimal", "solved")
    rows = run_cases(planned(folder, ("highs", "cpsat", "fcfs")), out, jobs=2, solu=STORED / "best.solu")
    found = [(row.case.instance, row.case.solver) for row in rows]
    assert found == [("tiny", "highs"), ("tiny", "cpsat"), ("minsky-1", "fcfs")]
    assert [(row.answer.status, row.verdict) for row in rows] == [solved, solved, ("feasible", "timeout")]
    *tiny, minsky = rows
    assert [(row.answer.objective, row.answer.bound, row.answer.sense) for row in tiny] == [(7, 7, "min")] * 2
    assert minsky.answer.objective is not None
    assert 0 < minsky.answer.objective < 4000
    for row in rows:
        assert row.trajectory[-1][1] == row.answer.objective
        assert row.solution is not None
        assert (out / row.solution).is_file()
        assert row.answer.wall_s is not None


ANSWER = """
import json
input()
print(json.dumps({"answer": {"status": "feasible", "objective": 1, "bound": 2}}))
"""


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let cases end at once: their processes solve nothing."""
    monkeypatch.setattr("placeopt.benchmark.supervise.CHILD", ("-c", ANSWER))


def written(out: Path) -> int:
    """Return the number of rows in the journal, those of cases that were run twice too."""
    return (out / NAME).read_text().count('{"row":')


@pytest.mark.usefixtures("pretend")
def test_resuming_runs_the_rest(folder: Path) -> None:
    """Two cases, then a second seed of both: the first two are kept, in the order that was asked for."""
    out = folder / "out"
    rows = run_cases(planned(folder), out)
    news: list[CampaignProgress] = []
    again = run_cases(planned(folder, seeds=(0, 1)), out, on_news=news.append)
    assert (news[0].kept, news[0].total, news[-1].done) == (2, 4, 2)
    assert [row for row in again if row.case.seed == 0] == rows
    runs, kept = read_journal(out)
    assert [run.number for run in runs] == [1, 2]
    assert len(kept) == written(out) == 4
    assert len((out / NAME).read_text().splitlines()) == 6
    run_cases(planned(folder), out, resume=False)
    assert (len(read_journal(out)[1]), written(out)) == (4, 6)


@pytest.mark.usefixtures("pretend")
def test_a_line_cut_off_is_run_again(folder: Path) -> None:
    """What a kill leaves of a line is no row; all before it stands."""
    out, cases = folder / "out", planned(folder)
    run_cases(cases, out)
    path = out / NAME
    path.write_bytes(path.read_bytes()[:-20])
    assert len(read_journal(out)[1]) == 1
    news: list[CampaignProgress] = []
    run_cases(cases, out, on_news=news.append)
    assert (news[0].kept, news[-1].done) == (1, 1)
    assert len(read_journal(out)[1]) == 2
    for line in path.read_text().splitlines():
        json.loads(line)


def test_a_changed_instance_is_another_case(folder: Path) -> None:
    """Or results of two instances would stand side by side as one."""
    before = planned(folder)
    (folder / "tiny.gap").write_text(TINY.replace("3 4", "3 5"))
    after = planned(folder)
    assert before[0].key != after[0].key
    assert before[1].key == after[1].key


def test_shuffled_rounds_keep_their_ids(folder: Path) -> None:
    """So plans of them are plans of the round as it was."""
    plan = plan_cases(["two"], ["fcfs", "highs"], time_limit_s=5, seeds=[3], threads=1, permute=True, instances=folder)
    rows = run_cases(plan.cases, folder / "out")
    assert all(row.case.permuted and not row.answer.refused for row in rows)
    assert rows[0].answer.objective == 7


def test_a_journal_has_one_writer(folder: Path) -> None:
    """Two runs at once would run the same cases twice."""
    with Journal(folder / "out"), pytest.raises(BadInput, match="another run writes there"):
        Journal(folder / "out")
    with Journal(folder / "out"):
        pass


def test_a_broken_line_is_named(folder: Path) -> None:
    with Journal(folder / "out"):
        pass
    (folder / "out" / NAME).write_text('{"row": {"run": 1}}\n')
    with pytest.raises(BadInput, match=r"results\.jsonl:1: row"):
        read_journal(folder / "out")


SLEEPER = """
import json, time
print(json.dumps(dict(point=[1.0, 9, 3, None, None])), flush=True)
time.sleep(60)
"""


def test_a_case_that_does_not_end_is_killed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it said until then is kept; the verdict is abort."""
    monkeypatch.setattr("placeopt.benchmark.supervise.CHILD", ("-c", SLEEPER))
    monkeypatch.setattr("placeopt.benchmark.supervise.allowance", lambda _: 1.5)
    [row] = run_cases(planned(folder, ("highs",)), folder / "out")
    assert (row.answer.status, row.verdict) == ("killed", "abort")
    assert row.answer.message == "killed after 1.5 s"
    assert row.trajectory == ((1.0, 9, 3, None, None),)


HANGS = """
import time
from placeopt.benchmark import child, linear_case
child.HARD_FACTOR = child.GRACE_S = 0.01
linear_case.run_solver = lambda model, case, report: (report.solving(), time.sleep(60))
child.main()
"""


def test_a_solve_that_does_not_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a solve is limited apart, so that a large instance costs no method its answer."""
    monkeypatch.setattr("placeopt.benchmark.supervise.CHILD", ("-c", HANGS))
    [row] = run_cases(planned(folder, ("highs",)), folder / "out")
    assert (row.answer.status, row.verdict) == ("killed", "abort")
    assert row.answer.message == "killed after 0.06 s solving"


def test_a_crash_is_an_answer(folder: Path) -> None:
    """The file went away after the cases were planned."""
    cases = planned(folder, ("highs",))
    (folder / "tiny.gap").unlink()
    [row] = run_cases(cases, folder / "out")
    assert (row.answer.status, row.verdict) == ("error", "abort")
    assert "tiny.gap" in row.answer.message


def test_a_cancelled_case_counts_as_not_run(folder: Path) -> None:
    """Ctrl-C in the middle: no row, no half solution."""
    cases, event = planned(folder, ("highs",)), threading.Event()
    threading.Timer(0.1, event.set).start()
    assert run_cases(cases, folder / "out", cancelled=event.is_set) == []
    assert written(folder / "out") == 0
    assert not list(folder.rglob("*.json.gz"))


@pytest.mark.usefixtures("pretend")
def test_load_and_machine_are_recorded(folder: Path) -> None:
    """Figures without them cannot be compared."""
    run_cases(planned(folder, ("fcfs",)), folder / "out", command="bench run")
    [run], rows = read_journal(folder / "out")
    assert run.command == "bench run"
    assert int(run.machine["cores"]) >= 1
    assert {"placeopt", "highspy", "ortools", "python"} <= run.versions.keys()
    assert all(row.load_before >= 0 for row in rows.values())


def test_the_stored_optima_are_those_of_the_collection() -> None:
    """30 assignment problems, each with a line; a name without an instance would never be noticed."""
    known = read_solu(STORED / "best.solu")
    names = [item.name for item in read_sets(["gap"], STORED)]
    assert len(names) == 30
    assert all(known[name].optimal for name in names)
