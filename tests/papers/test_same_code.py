"""Rows of earlier code: which they are, the sample, and what running it again says."""

from __future__ import annotations

from pathlib import Path

from placeopt_papers import campaign
from placeopt_papers.journal import open_results
from placeopt_papers.records import PaperCase, PaperRow, ResultLine, SameValues
from placeopt_papers.same_code import CLOCKS, of_other_code, run_again, sample
from placeopt_papers.stored import add_compared, read_compared, store_rows

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
PAIR = PaperCase(setting="sc17-alexnet-1-spread-beside-1", policy="fcfs", seed=0)
LIST = PaperCase(setting="sc17-table-1", policy="fcfs", seed=0)


def row_of(case: PaperCase, cpu_s: float = 1, code: str = "", **figures: float) -> PaperRow:
    """Return a row of a case."""
    return PaperRow(case=case, scenario="", scheduling="", code=code, version="0", figures=figures, cpu_s=cpu_s)


def test_rows_of_other_code() -> None:
    """Today's, and earlier ones that were compared with today's code, not with some other."""
    today = campaign.code_of(PAIR)
    rows = [row_of(PAIR, code=today), row_of(LIST, code="earlier"), row_of(LIST, code="first")]
    assert of_other_code(rows, []) == rows[1:]
    assert of_other_code(rows, [SameValues(earlier="earlier", later=today, cases=(PAIR,))]) == rows[2:]
    assert of_other_code(rows, [SameValues(earlier="earlier", later="another", cases=(PAIR,))]) == rows[1:]


def test_the_sample_has_every_policy_and_every_setting() -> None:
    """The cheapest of each, at most ten seconds; a varied constant is no other setting, a time is never compared."""
    rows = [
        row_of(PaperCase(setting=setting, policy=policy, seed=seed), cpu_s, makespan_h=1.0)
        for setting, policy, seed, cpu_s in (
            ("a", "p", 0, 3),
            ("a", "p", 1, 2),
            ("a@Cx2", "p", 0, 1),
            ("a", "q", 0, 5),
            ("b", "q", 0, 4),
            ("c", "r", 0, 11),
        )
    ]
    clocked = row_of(PaperCase(setting="d", policy="s", seed=0), 1, decision_cpu_s=0.5)
    found = {(row.case.setting, row.case.policy, row.case.seed) for row in sample([*rows, clocked])}
    assert found == {("a@Cx2", "p", 0), ("b", "q", 0)}


def test_what_runs_again_with_other_values_is_named() -> None:
    """Then none of the rows of that code counts as compared."""
    stored = [row for case in (PAIR, LIST) if (row := campaign.run_case(case, instances=INSTANCES)) is not None]
    stored = [row.model_copy(update={"code": "earlier"}) for row in stored]
    same, changed = run_again(stored, INSTANCES)
    assert same == [SameValues(earlier="earlier", later=campaign.code_of(PAIR), cases=(PAIR, LIST))]
    assert changed == []
    name, value = next((name, value) for name, value in stored[1].figures.items() if value and name not in CLOCKS)
    other = stored[1].model_copy(update={"figures": stored[1].figures | {name: value + 1e-9}})
    assert run_again([stored[0], other], INSTANCES) == ([], [LIST])
    assert run_again([stored[0].model_copy(update={"scenario": "another"})], INSTANCES) == ([], [PAIR])


def test_comparisons_are_kept_while_rows_of_that_code_are_stored(tmp_path: Path) -> None:
    """Stored anew from rows of other code they are gone."""
    path = tmp_path / "rows.jsonl"
    for folder, code in (("one", "earlier"), ("two", "later")):
        case = PaperCase(setting="horus-w-large", policy="fcfs", seed=0)
        with open_results(tmp_path / folder) as file:
            file.append(ResultLine(row=row_of(case, code=code, makespan_h=1.0)))
    store_rows([tmp_path / "one"], path)
    add_compared([SameValues(earlier="earlier", later="later", cases=(PAIR,))], path)
    store_rows([tmp_path / "one"], path)
    assert [same.later for same in read_compared(path)] == ["later"]
    store_rows([tmp_path / "two"], path)
    assert read_compared(path) == []
