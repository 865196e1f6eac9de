"""Every measurement of ``bench/`` runs, says what it promises, and the page is what the stored results give."""

import json
from pathlib import Path

import pytest

from compare import compared
from history import history
from page import page
from placeopt.scheduling import named_policy, policy_names
from run import PAGE, RESULTS, main, stored
from spec import FAILED, BenchSpec, Row, latest, measure, read_rows
from specs import NAMES, read_spec

FREE = frozenset({"p99_ms", "calls_a_second", "cpu_s", "rounds", "tried", "refused"})
"""Columns that only some rows of a spec have."""


@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_round_of_every_spec_gives_rows(name: str) -> None:
    """A measurement that nobody runs breaks unseen."""
    spec = read_spec(name)
    rows = list(measure(spec, [next(iter(spec.rounds))]))
    assert rows
    for row in rows:
        assert FAILED not in row, row
        assert set(spec.columns) - FREE <= set(row)
        assert json.loads(json.dumps(row)) == row
        assert row["cpu"], row["commit"]


def test_a_spec_is_named_like_its_file() -> None:
    """Results are found by the name."""
    assert [read_spec(name).name for name in NAMES] == list(NAMES)
    assert len({read_spec(name).question for name in NAMES}) == len(NAMES)


def test_a_round_that_fails_is_a_row() -> None:
    """Rows before it stay, the reason stands in the row, and the next round is measured."""

    def run(number: int) -> list[Row]:
        return [{"value": 10 // number}]

    spec = BenchSpec("ratio", "How much is a part?", {"none": 0, "two": 2}, run, ("value",), 0.1)
    failed, good = measure(spec, spec.rounds)
    assert failed[FAILED] == "ZeroDivisionError: integer division or modulo by zero"
    assert good["value"] == 5
    assert failed["round"] == "none"


def test_the_page_is_what_the_results_give() -> None:
    """``python bench/run.py --page`` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page(stored())


def test_every_file_of_results_is_of_a_spec() -> None:
    """What no spec measures any more is deleted; long tests are the only other ones."""
    assert {path.stem for path in RESULTS.glob("*.jsonl")} <= {*NAMES, "campaigns"}


def row(**fields: object) -> Row:
    """Return a row of a round by ``auto``, value 90 of at most 100, cost 50."""
    names = {"spec": "middle", "round": "r", "method": "auto", "limit_s": 3.0, "status": "feasible"}
    figures = {"value": 90, "value_bound": 100, "cost": 50, "cost_bound": 40, "seconds": 2.0, "load": 1.0}
    return {**names, **figures, **fields}


def test_versions_are_compared_by_value_then_cost() -> None:
    """
    Costs of plans that are worth more say nothing; a worse value and a failure of the later version are named.

    A value above a proven bound is a contradiction: one of the two versions is wrong, whichever it is.
    """
    before = [row(), row(round="q"), row(round="p")]
    after = [row(value=95, cost=70), row(round="q", cost=45, seconds=1.0), row(round="p", value=80)]
    total, worse = compared(before, after)
    assert "value better in 1, worse in 1 of 3" in total
    assert "cost better in 1, worse in 0 of 1" in total
    assert worse == "middle p auto 3.0: value 80, before 90 (-11.111 %)"
    (_, line) = compared([row()], [row(value=101, value_bound=101)])
    assert "CONTRADICTION: the former bound 100 is below the value 101" in line
    assert compared([row()], [row(failed="MemoryError: ")])[1].endswith("failed: MemoryError: ")


def test_every_measured_version_has_a_line() -> None:
    """Versions that have not measured the library and the middle have none."""
    first, second = {"commit": "a" * 12, "date": "2026-01-02 03:04"}, {"commit": "b" * 12, "date": "2026-02-03 04:05"}
    done = {"status": "optimal", "cost": None}
    rows = [row(**first), row(spec="library", **first, **done), row(**second)]
    (line,) = history(rows)
    assert line[:8] == ("`aaaaaaaaa`", "2026-01-02", "11.1", None, 1, "11.1", "20", 0)


def test_what_is_drawn_by_size_and_by_time() -> None:
    """A size of which a round failed is left out; where no cost counts none is stated."""
    of = {"commit": "0123456789", "limit_s": 10.0}
    sizes = [
        row(spec="curve", round=f"{spec}-{6 * nodes}x{nodes}x8-s1", method=method, **of)
        for nodes, specs in ((8, ("gangs", "varied")), (16, ("gangs",)))
        for spec in specs
        for method in ("auto", "stranding")
    ]
    free = {"cost": None, "cost_bound": None}
    trace = [[2.0, 45, None], [4.0, 90, 100]]
    early = [row(spec="primal", round="a", trace=trace, **of), row(spec="primal", round="b", trace=[], **of, **free)]
    shown = page([*sizes, *early])
    assert "| 8 | 11.1 | 11.1 | 20 | 20 | 0 | 0 | 2.0 |" in shown
    assert "| 16 |" not in shown
    assert "line [11.1111]" in shown
    assert "| a | 30 | 70 |" in shown
    assert "| b | 100 |  |" in shown


def test_a_failure_is_shown_until_its_round_succeeds() -> None:
    """Rows before the failure stay, so that a failure hides no answer."""
    failure = {"spec": "middle", "round": "r", "failed": "MemoryError: "}
    assert latest([row(), failure]) == [row(), failure]
    assert latest([failure, row()]) == [row()]
    assert latest([failure, row(round="q")]) == [failure, row(round="q")]


def test_an_unknown_spec_is_named_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["run.py", "libary"])
    with pytest.raises(SystemExit):
        main()
    assert f"'libary': expected one of baseline, all, {', '.join(NAMES)}" in capsys.readouterr().err


def test_rows_are_kept_where_they_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--out`` gathers the rows of several specs in one file."""
    out = tmp_path / "rows.jsonl"
    monkeypatch.setattr("sys.argv", ["run.py", "readings", "--rounds", "slurm, sample", "--out", str(out)])
    assert main() == 0
    assert [(one["spec"], one["round"]) for one in read_rows(out)] == [("readings", "slurm, sample")]


STARVES = 20
"""Mean run times of a wait, of the 40 that a stream lasts."""


@pytest.mark.parametrize("name", policy_names())
def test_a_policy_under_which_a_job_starves_says_so(name: str) -> None:
    """Behind each of eight streams a job starts within `STARVES` mean run times, or the policy's file says why not."""
    rows = [row for row in latest(read_rows(RESULTS / "waits.jsonl")) if row["round"] == name]
    assert len({row["stream"] for row in rows}) == 8
    policy = named_policy(name)
    departures = policy.source.departures if policy.source is not None else ()
    says = any("may starve" in departure for departure in departures)
    assert says == any(row["victim_wait_runs"] > STARVES for row in rows)
