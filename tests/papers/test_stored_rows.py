"""The pages in ``bench/`` are those of the stored rows, and the rows those of today's scenarios and policies."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from placeopt import BadInput
from placeopt_papers import campaign
from placeopt_papers.catalogue import EVERY_SETTING, FIGURE_MEASURES
from placeopt_papers.journal import NAME, open_results
from placeopt_papers.records import CampaignStart, PaperCase, PaperRow, ResultLine
from placeopt_papers.stored import BEGIN, END, headline_block, read_compared, read_stored, store_rows, with_block

ROOT = Path(__file__).resolve().parents[2]
INSTANCES = ROOT / "instances"
STARTS, ROWS = read_stored(ROOT / "bench" / "papers_rows.jsonl")
OF = {row.case: row for row in ROWS}
AGAIN = (
    PaperCase(setting="sc17-workloads-5", policy="topo-aware-p", seed=0),
    PaperCase(setting="sc17-artifact-100", policy="sc17-bf", seed=0),
    PaperCase(setting="dynamoml-12", policy="dynamoml", seed=1),
    PaperCase(setting="dynamoml-12@SPREAD_THOUSANDTHSx0.5", policy="k8s-scaling", seed=0),
    PaperCase(setting="horus-w-large", policy="horus", seed=2),
    PaperCase(setting="genie-5", policy="min-min", seed=0),
    PaperCase(setting="fgd-openb", policy="fgd:points", seed=42),
)
"""Played again by the test; the clock, of which no figure of these is made, aside."""


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the command's module."""
    spec = importlib.util.spec_from_file_location("papers_table", ROOT / "bench" / "papers_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["papers_table.py", "--check"])
    return module


def test_pages_are_what_the_stored_rows_make(command: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """``python bench/papers_table.py --check``."""
    assert (command.main(), capsys.readouterr().out) == (0, "")


def test_a_stale_page_is_found(
    command: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A value that somebody changed by hand is named, and written anew without ``--check``."""
    text = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    copy = tmp_path / "README.md"
    copy.write_text(text.replace("| fitted ", "| proven ", 1), encoding="utf-8")
    monkeypatch.setattr(command, "README", copy)
    assert (command.main(), capsys.readouterr().out) == (1, "README.md: stale\n")
    monkeypatch.setattr(sys, "argv", ["papers_table.py"])
    assert (command.main(), copy.read_text(encoding="utf-8")) == (0, text)


def test_every_simulation_of_a_figure_is_stored() -> None:
    """All seeds of all settings, those with a constant varied too; and no row of anything else."""
    settings = list(EVERY_SETTING.values())
    needed = campaign.plan_cases(settings, range(5), whole=False, instances=INSTANCES, figures=True)
    assert {case for case in needed if case not in OF} == set()
    assert {case for case in OF if case not in set(needed)} == set()


def test_rows_are_of_todays_scenarios_and_policies() -> None:
    """By the digests of both, for the first seed of every setting; and they have the measures that figures use."""
    first = {case.setting: case.seed for case in sorted(OF, key=lambda case: -case.seed)}
    stale = {
        (case.setting, case.policy)
        for case, row in OF.items()
        if case.seed == first[case.setting]
        if not campaign.has_same_inputs(case, row.model_copy(update={"figures": _all(row)}), INSTANCES)
    }
    assert stale == set()
    for (setting, policy), measures in FIGURE_MEASURES.items():
        for case, row in OF.items():
            if (case.setting, case.policy) == (setting, policy):
                assert row.figures.keys() == measures, case


def test_rows_say_which_code_ran_them_or_was_found_to_give_the_same() -> None:
    """Those of before there was a digest were compared with later code by a sample of at least thirty rows."""
    compared = read_compared(ROOT / "bench" / "papers_rows.jsonl")
    assert {row.code for row in ROWS} - {""} != set()
    assert sum(len(same.cases) for same in compared if not same.earlier) >= 30
    assert {case for same in compared for case in same.cases} <= set(OF)


def _all(row: PaperRow) -> dict[str, float | None]:
    """Add the measures that only our own policies are compared by: they are not stored."""
    return dict.fromkeys(EVERY_SETTING[row.case.setting].measures) | row.figures


@pytest.mark.parametrize("case", AGAIN, ids=lambda case: f"{case.setting}-{case.policy}")
def test_rows_are_what_a_simulation_gives_today(case: PaperCase) -> None:
    """Some of the cheap ones, figure by figure."""
    again = campaign.run_case(case, instances=INSTANCES)
    assert again is not None
    assert {name: again.figures[name] for name in OF[case].figures} == OF[case].figures


def test_rows_are_stored_short_and_without_the_machines_folders(tmp_path: Path) -> None:
    """The last folder that has a case counts; percentiles and what no figure uses are left out."""
    case = PaperCase(setting="horus-w-large", policy="fcfs", seed=0)
    figures = dict.fromkeys((*FIGURE_MEASURES["horus-w-large", "fcfs"], "in_time_percent"), 1.0)
    row = PaperRow(case=case, scenario="a", scheduling="b", version="0", figures=figures, waits_s=(0.0, 1.0), cpu_s=1)
    other = row.model_copy(update={"case": case.model_copy(update={"policy": "placeopt"})})
    start = CampaignStart(
        began="now", command="placeopt bench papers --out /some/where --figures", machine={}, versions={}
    )
    for folder, scenario in (("one", "old"), ("two", "new")):
        with open_results(tmp_path / folder) as file:
            for line in (
                ResultLine(start=start),
                ResultLine(row=row.model_copy(update={"scenario": scenario})),
                ResultLine(row=other),
            ):
                file.append(line)
    assert store_rows([tmp_path / "one", tmp_path / "two"], tmp_path / NAME) == 1
    starts, (stored,) = read_stored(tmp_path / NAME)
    assert {start.command for start in starts} == {"placeopt bench papers --out results --figures"}
    assert (stored.scenario, stored.waits_s) == ("new", ())
    assert stored.figures.keys() == FIGURE_MEASURES["horus-w-large", "fcfs"]


def test_a_page_without_markers_is_refused() -> None:
    """Rather than lose the rest of it."""
    assert with_block(f"a {BEGIN} b {END} c", "new") == "a new c"
    with pytest.raises(BadInput, match="no <!-- begin"):
        with_block("nothing", headline_block([]))
