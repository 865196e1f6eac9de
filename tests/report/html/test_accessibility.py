"""The page for everyone: contrast of its colours, headings, unique ids; axe-core where it is found."""

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

from helpers.accessibility import MISSING, checked, contrast, schemes
from helpers.scenarios import scenario, timed
from placeopt import solve
from placeopt.build import instance, job, node
from placeopt.report import html
from placeopt.scheduling import named_policy
from placeopt.simulation import simulate

pytest.importorskip("matplotlib")

SERIOUS = {"serious", "critical"}


@pytest.mark.parametrize("scheme", [0, 1, 2], ids=["light", "dark", "print"])
def test_contrast_of_text(scheme: int) -> None:
    """4.5 to 1 for text, 3 to 1 for lines that carry meaning, in each of the page's styles."""
    found = schemes(html.page("title", "command", [], [], []))
    assert len(found) == 3
    colours = found[scheme]
    for name in ("ink", "soft", "link", "good", "bad"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
    assert contrast(colours["ink"], colours.get("code", "#FFFFFF")) >= 4.5
    assert contrast(colours["faint"], colours["paper"]) >= 3


@pytest.fixture
def whole_page(tmp_path: Path) -> str:
    """A page with every part: changes, policies, inputs, panels, bars, a map."""
    jobs = [timed(name, at, 60_000, gpus=gpus) for name, at, gpus in (("a", 0, 3), ("b", 900, 4), ("c", 2, 1))]
    world, logs = scenario(jobs), []
    for name in ("fcfs", "best-fit"):
        path = tmp_path / f"{world.name}.{name}.s0.jsonl"
        simulate(world, named_policy(name), log=path)
        logs.append(html.read_log(path))
    round_ = instance([node(f"n{i}") for i in range(3)], [job("a"), job("b", gpus=2)])
    plan = solve(round_)
    tables = [html.policy_table([], logs, world), html.plan_table([plan])]
    figures = [html.gpu_map(round_, plan), *html.simulation_figures(logs, world)]
    tables = [*html.comparisons(tables, tables), *tables]
    return html.page("Report", "placeopt report x", [html.Fact("seed", "0")], figures, tables, tables)


def test_structure(whole_page: str) -> None:
    """Headings go down by one; ids are unique; pictures, tables and boxes that scroll are named."""
    levels = [int(level) for level in re.findall(r"<h(\d)", whole_page)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert levels.count(1) == 1
    ids = Counter(re.findall(r' id="([^"]+)"', whole_page))
    assert not [name for name, count in ids.items() if count > 1]
    assert set(re.findall(r'href="#([^"]+)"', re.sub(r'xlink:href="#[^"]+"', "", whole_page))) <= ids.keys()
    assert set(re.findall(r"url\(#([^)]+)\)", whole_page)) <= ids.keys()
    for svg in re.findall(r"<svg [^>]*>", whole_page):
        assert 'role="img"' in svg
        assert 'aria-label="' in svg
    assert whole_page.count('class="scroll"') == whole_page.count('role="region" tabindex="0" aria-label="')
    assert "<th>" not in whole_page


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, False), (1280, True), (400, True)])
def test_axe_finds_nothing_serious(whole_page: str, width: int, dark: bool) -> None:
    """Nor does the page scroll sideways, nor is any text in a figure below 9 px."""
    found = checked(whole_page, width=width, dark=dark)
    assert [entry for entry in found["violations"] if entry["impact"] in SERIOUS] == []
    assert (found["dark"], found["scrolls"]) == (dark, False)
    assert found["text_px"] >= 9
    assert found["rules"] > 20
    unjudged = [entry["first"] for entry in found["incomplete"] if entry["rule"] == "color-contrast"]
    assert width < 1280 or all(first.startswith("<text") for first in unjudged)  # at 400 px columns are scrolled away
