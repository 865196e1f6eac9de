"""Logs of simulations: curves by hand, what is read of a log, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.scenarios import scenario as one_node
from helpers.scenarios import timed
from placeopt import BadInput
from placeopt.build import job, node, option, running, scenario
from placeopt.report.views import MOST_POINTS, SimulationLog, grouped, log_views, read_log
from placeopt.scheduling import named_policy
from placeopt.simulation import Scenario, simulate, summarise


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def on(name: str, **gpus: int) -> dict[str, Any]:
    """Return the start of a job on GPUs of n0, ``g0=500`` a half of the first."""
    return {"job": name, "assignments": [{"node": "n0", "gpus": {gpu[1:]: milli for gpu, milli in gpus.items()}}]}


def curves(log: SimulationLog, world: Scenario | None = None) -> dict[str, list[tuple[Any, ...]]]:
    """Return the points of each picture by its title, without the policy."""
    return {view.title: [row[1:] for row in view.tables[0].rows] for view in log_views([log], world)}


LINES = (
    {"e": "scenario", "scenario": "s"},
    {"t": 1000, "e": "arrival", "job": "a"},
    {"t": 1000, "e": "round", "n": 1, "start": [on("a", g0=1000)]},
    {"t": 2000, "e": "arrival", "job": "b"},
    {"t": 5000, "e": "end", "job": "a"},
    {"t": 5000, "e": "round", "n": 2, "start": [on("b", g1=500)]},
    {"t": 9000, "e": "end", "job": "b"},
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two jobs, one after the other; the second waits three seconds."""
    return written(tmp_path / "s.fcfs.s0.jsonl", *LINES)


def test_curves_by_hand(log: Path) -> None:
    """One GPU held from 1 to 5 s, half a one from 5 to 9; waits of 0 and 3 s; one job waits from 2 to 5 s."""
    drawn = curves(read_log(log))
    assert drawn["GPUs held over time"] == [(1, 1000), (5, 500), (9, 0)]
    assert drawn["Waiting"] == [(0.0, 0.5), (3.0, 1.0)]
    assert drawn["Jobs waiting over time"] == [(0, 0), (1, 0), (2, 1), (5, 0), (9, 0)]
    (bars,) = (view for view in log_views([read_log(log)]) if view.title.startswith("Jobs by GPU"))
    assert bars.tables[0].rows == (("n0 0", 1000, 5000, "a", 1000), ("n0 1", 5000, 9000, "b", 500))


def test_a_log_has_the_figures_of_its_summary(tmp_path: Path) -> None:
    """Two ways to a figure: the simulation's own summary, and the log read again."""
    jobs = (("a", 0, 3), ("b", 1000, 4), ("c", 2000, 1))
    world = one_node([timed(name, at, 60_000, gpus=gpus) for name, at, gpus in jobs])
    for name in ("fcfs", "best-fit"):
        path = tmp_path / f"{world.name}.{name}.s0.jsonl"
        summary = summarise(simulate(world, named_policy(name), log=path))
        waits = [wait for wait, _ in curves(read_log(path), world)["Waiting"]]
        assert summary.wait_s is not None
        assert sum(waits) / len(waits) == pytest.approx(summary.wait_s.mean)
        assert read_log(path).policy == name


@pytest.mark.parametrize("name", ["s", "a.b.c", "x.fcfs.s0"])
def test_the_policy_is_in_the_name_of_a_log(tmp_path: Path, name: str) -> None:
    world = one_node([timed("a", 0, 1000)]).model_copy(update={"name": name})
    path = tmp_path / f"{name}.best-fit.s3.jsonl"
    simulate(world, named_policy("best-fit"), log=path, seed=3)
    assert read_log(path).policy == "best-fit"


def test_jobs_that_were_changed(tmp_path: Path) -> None:
    """Moved at 3 s, stopped at 5 s, again from 7 s on; another one fails, and leaves while it waits."""
    there, moved = on("a", g0=1000), on("a", g1=1000)
    other = {"job": "b", "assignments": [{"node": "n1", "gpus": {"0": 500}}]}
    path = written(
        tmp_path / "changed.jsonl",
        {"t": 1000, "e": "round", "start": [there, other]},
        {"t": 2000, "e": "failure", "job": "b"},
        {"t": 3000, "e": "round", "start": [], "move": [moved]},
        {"t": 5000, "e": "round", "start": [], "stop": ["a"]},
        {"t": 6000, "e": "leave", "job": "b"},
        {"t": 7000, "e": "round", "start": [there]},
        {"t": 9000, "e": "end", "job": "a"},
    )
    found = read_log(path)
    assert found.held == {
        ("n0", 0): [(1000, 3000, "a", 1000), (7000, 9000, "a", 1000)],
        ("n0", 1): [(3000, 5000, "a", 1000)],
        ("n1", 0): [(1000, 2000, "b", 500)],
    }
    assert (found.starts, found.ends) == ({"a": 1000, "b": 1000}, {"b": 6000, "a": 9000})
    assert found.queue == {1000: 0, 2000: 1, 3000: 1, 5000: 2, 6000: 1, 7000: 0, 9000: 0}


def test_what_has_run_from_the_beginning(tmp_path: Path) -> None:
    """The log has no line of its start: the scenario has; without it the job comes later."""
    there = running(job("a"), [("n0", [0])])
    path = written(
        tmp_path / "running.jsonl",
        {"t": 2000, "e": "round", "start": [], "stop": ["a"]},
        {"t": 5000, "e": "round", "start": [{**on("a", g1=1000), "option": "default"}]},
        {"t": 9000, "e": "end", "job": "a"},
    )
    alone, known = read_log(path), read_log(path, [there])
    assert alone.held == {("n0", 1): [(5000, 9000, "a", 1000)]}
    assert known.held == {("n0", 0): [(0, 2000, "a", 1000)], **alone.held}
    assert known.starts == {"a": 0}
    assert curves(known)["Waiting"] == []


def test_what_idle_gpus_are_good_for(log: Path) -> None:
    """
    Two nodes of four GPUs; on one a GPU is held from 1 s to 9 s: three others are idle there.

    Slots of four: both nodes, one meanwhile. Of two: 4, and 2 + 3 // 2 = 3 meanwhile.
    """
    drawn = curves(read_log(log), scenario(2, []))
    for title, first, meanwhile in (
        ("Idle GPUs on nodes partly in use, over time", 0, 3),
        ("Slots of 2 idle GPUs on one node, over time", 4, 3),
        ("Slots of 4 idle GPUs on one node, over time", 2, 1),
    ):
        assert drawn[title] == [(0, first), (1, meanwhile), (5, meanwhile), (9, first)]


def test_slowdowns_by_hand(tmp_path: Path) -> None:
    """
    Two jobs from 1 to 5 s and from 2 to 9 s; alone they take 2 s, and 3.5 s in the option that is chosen.

    So 7 / 3.5 and 4 / 2; a job that is not of the scenario, such as a replica, is not drawn.
    """
    short, long = option("a", run_time_ms=1000), option("b", run_time_ms=3500)
    jobs = [job("a", arrival_ms=1000, options=(short,)), job("b", arrival_ms=2000, options=(short, long))]
    world = scenario(1, jobs, run_time_ms={"a": 2000})
    path = written(
        tmp_path / "log.jsonl",
        {"t": 1000, "e": "round", "start": [on("a", g0=1000), on("replica", g0=1000)]},
        {"t": 2000, "e": "round", "start": [{**on("b", g0=1000), "option": "b"}]},
        {"t": 5000, "e": "end", "job": "a"},
        {"t": 6000, "e": "end", "job": "replica"},
        {"t": 9000, "e": "end", "job": "b"},
    )
    assert curves(read_log(path), world)["Slowdown with waiting"] == [(0.0, 2.0), (1.0, 2.0)]


def test_a_log_that_was_cut_is_read_to_its_last_line(log: Path) -> None:
    """Who runs at its end is shown so far. Unicode has more ends of lines than a log: a name may hold one."""
    text = log.read_text(encoding="utf-8").replace('"scenario": "s"', '"scenario": "s\u2028t"')
    assert "\u2028" in text
    for shown, ends in ((text, {"a": 5000, "b": 9000}), (text[:-10], {"a": 5000})):
        log.write_text(shown, encoding="utf-8")
        assert read_log(log).ends == ends


def test_the_scenario_of_other_logs_is_refused(log: Path) -> None:
    with pytest.raises(BadInput, match="node 'n0' is not in the scenario"):
        log_views([read_log(log)], scenario([node("else")], []))


@pytest.mark.parametrize("text", ["", "no json\n", '{"t": 1}\n', "[]\n"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"x\.jsonl"):
        read_log(tmp_path / "x.jsonl")
    with pytest.raises(BadInput, match=r"y\.jsonl"):
        read_log(tmp_path / "y.jsonl")


def test_long_curves_keep_means() -> None:
    """Groups hold all points: the time-weighted mean of all."""
    points = [(float(i), float(i % 7)) for i in range(10 * MOST_POINTS + 3)]
    at, mean = zip(*grouped(points), strict=True)
    assert (len(at), at[0]) == (MOST_POINTS, 0.0)
    lengths = [b - a for a, b in zip(at, [*at[1:], points[-1][0]], strict=True)]
    exact = sum(y for _, y in points[:-1])
    last = mean[-1] * lengths[-1] - sum(y for x, y in points[:-1] if x >= at[-1])  # the last is where the curve ends
    assert sum(m * n for m, n in zip(mean, lengths, strict=True)) - last == pytest.approx(exact)
