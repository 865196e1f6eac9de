"""Pictures of figures and settings: their points."""

from __future__ import annotations

import pytest

from placeopt_papers.catalogue import PAPERS, SETTINGS
from placeopt_papers.figures import paper_figures, setting_figures
from placeopt_papers.records import PaperCase, PaperRow
from placeopt_papers.tables import CampaignRows


def row(policy: str, waits: tuple[float, ...]) -> PaperRow:
    """Make a row of W-Large."""
    return PaperRow(
        case=PaperCase(setting="horus-w-large", policy=policy, seed=4),
        scenario="",
        scheduling="",
        version="",
        figures={"makespan_min": 300.0, "utilisation_percent": 60.0},
        waits_s=waits,
        slowdowns=(1.0, 2.0, 3.0),
        held=((0.5, 1.0), (1.0, 0.25)),
        cpu_s=0.0,
    )


RUNS = CampaignRows([row("fcfs", (0.0, 10.0, 20.0)), row("horus", (0.0, 0.0, 5.0))])


def test_bars_have_the_papers_value_and_ours() -> None:
    """A picture a table and unit; no bar where nothing was run."""
    drawn = {one.name: one for one in paper_figures("horus", "Horus", PAPERS["horus"].figures, RUNS)}
    rows = {str(one[0]): one[1:] for one in drawn["horus-table-6-min"].rows}
    assert rows["W-Large, fcfs: makespan"] == ("min", 306.9, 300.0)
    assert rows["W-Large, obp: makespan"] == ("min", 238.6, None)
    assert "horus-table-7-steps" not in drawn


def test_curves_of_a_setting() -> None:
    """Waits as a distribution, slowdowns from the worst on, what is held from the beginning, in minutes; by policy."""
    waits, slow, held = setting_figures(SETTINGS["horus-w-large"], RUNS)
    assert [one for one in waits.rows if one[0] == "horus"] == [
        ("horus", 0.0, 0.0),
        ("horus", 0.0, 0.01),
        ("horus", 5.0, 0.02),
    ]
    assert [one[2] for one in slow.rows if one[0] == "fcfs"] == [3.0, 2.0, 1.0]
    assert [one for one in held.rows if one[0] == "fcfs"] == [
        ("fcfs", 0.0, 1.0),
        ("fcfs", 30.0, 1.0),
        ("fcfs", 60.0, 0.25),
    ]
    assert "seed 4" in waits.caption
    nobody = CampaignRows([row("fcfs", (0.0, 0.0))])
    assert setting_figures(SETTINGS["horus-w-large"], nobody) == []


def test_files_of_a_picture() -> None:
    """SVG, PNG and the points."""
    pytest.importorskip("matplotlib")
    made = setting_figures(SETTINGS["horus-w-large"], RUNS)[0].files(("svg", "png"))
    assert set(made) == {f"horus-w-large-waits.{end}" for end in ("svg", "png", "csv")}
    assert b"horus" in made["horus-w-large-waits.svg"]
