"""The page for everyone: drawn in a browser, offline, under its own policy; contrast; axe-core where it is found."""

import base64
import hashlib
import re

import pytest

from helpers.accessibility import CHROMIUM, MISSING, checked, contrast, drawn, light_dark
from helpers.scenarios import scenario, timed
from placeopt import solve
from placeopt.build import instance, job, node, running
from placeopt.report.page import live_page, page
from placeopt.report.views import instance_view, plan_view, scenario_view, simulation_view
from placeopt.scheduling import named_policy
from placeopt.simulation import simulate, summarise
from placeopt.view import Chart, Column, Figure, Table, Unit, View, compare

SERIOUS = {"serious", "critical"}


def columns(*names: str | tuple[str, Unit]) -> tuple[Column, ...]:
    return tuple(Column(name=one) if isinstance(one, str) else Column(name=one[0], unit=one[1]) for one in names)


def charted(kind: str, table: Table, **fields: object) -> View:
    """A view of one chart, which has the name of its kind."""
    chart = Chart.model_validate({"kind": kind, "table": table.name, **fields})
    return View(title=f"{kind} </script><b>", tables=(table,), chart=chart)


BARS = Table(name="Bars", columns=columns("node", ("start", "ms"), ("end", "ms"), "job"), rows=(("n0", 0, 9, "a"),))
POINTS = Table(name="Points", columns=columns("x", "least", "most"), rows=((1, 2, 3), (2, 1, None), (4, 4, 4)))
NAMED = Table(name="Named", columns=columns("what", ("least", "s"), "most"), rows=(("a", 2.5, 3), ("b", 1, 2)))


@pytest.fixture(scope="module")
def views() -> list[View]:
    """Every kind of chart, and every kind of document that has a view of its own."""
    a, b = job("a"), job("b<i>", gpus=2)
    nodes = [node("n0"), node("n1"), node("n2", drained=True)]
    round_ = instance(nodes, [a, b, job("c", gpus=99)], running=[running(a, [("n0", [0])])])
    world = scenario([timed(name, at, 60_000, gpus=gpus) for name, at, gpus in (("a", 0, 3), ("b", 900, 4))])
    figures = [summarise(simulate(world, named_policy(name))) for name in ("fcfs", "best-fit")]
    simulated = simulation_view(figures)
    return [
        plan_view(solve(round_), round_),
        instance_view(round_),
        scenario_view(world),
        simulated,
        compare(simulation_view(figures[:1]), simulation_view(figures[1:])),
        charted("gantt", BARS, x="start", until="end", lane="node", label="job"),
        *(charted(kind, POINTS, x="x", y=("least", "most")) for kind in ("lines", "steps", "scatter")),
        *(charted(kind, NAMED, x="what", y=("least", "most")) for kind in ("bars", "intervals")),
        View(title="good", verdict="good", figures=(Figure(name="n", value=None),), notes=("a note",)),
    ]


def test_nothing_is_loaded_and_nothing_else_runs(views: list[View]) -> None:
    """The policy names the only script and style, by their hashes; data cannot end the element in which it stands."""
    text = page(views)
    policy = dict(part.split(" ", 1) for part in re.findall(r'Security-Policy" content="([^"]+)"', text)[0].split("; "))
    for tag, source in (("script", "script-src"), ("style", "style-src")):
        (code,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert policy[source] == f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
    assert policy["default-src"] == "'none'"
    assert "connect-src" not in policy
    assert not re.search(r'(src|href)="', text)
    assert text.count("</script>") == 2
    assert "connect-src 'self'" in live_page("/views")


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_everything_is_drawn(views: list[View]) -> None:
    """In a browser without a network: a section for each view, a picture for each chart, names as they are."""
    text = drawn(page(views))
    assert text.count("<section") == len(views)
    assert text.count("<figure>") == sum(view.chart is not None for view in views)
    assert "gantt &lt;/script&gt;&lt;b&gt;" in text
    assert "✓ good" in text
    assert text.count('class="free"') > 8  # idle GPUs of both maps
    assert "b&lt;i&gt;" in text
    assert "2.5 s" in text


def test_contrast_of_text() -> None:
    """4.5 to 1 in the light scheme and in the dark one."""
    for colours in light_dark(page([])):
        assert set(colours) >= {"ink", "soft", "good", "bad", "open", "paper"}
        for name in ("ink", "soft", "good", "bad", "open"):
            assert contrast(colours[name], colours["paper"]) >= 4.5, name


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, False), (1280, True), (400, True)])
def test_axe_finds_nothing_serious(views: list[View], width: int, dark: bool) -> None:
    """Nor does the page scroll sideways, nor is any text in a picture below 9 px."""
    found = checked(page(views), width=width, dark=dark)
    assert [entry for entry in found["violations"] if entry["impact"] in SERIOUS] == []
    assert (found["dark"], found["scrolls"]) == (dark, False)
    assert found["text_px"] >= 9
    assert found["rules"] > 15
