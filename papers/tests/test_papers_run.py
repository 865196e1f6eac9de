"""Settings make scenarios, cells are simulated once, and rows are what today's code gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt import BadInput, read_scenario
from placeopt.simulation import Scenario, simulate, summarise
from placeopt_papers.__main__ import main
from placeopt_papers.estimates import beliefs
from placeopt_papers.figures import figures, orders
from placeopt_papers.measures import MEASURES, measure_all
from placeopt_papers.one_at_a_time.protocol import OneAtATime
from placeopt_papers.results import RESULTS, Cell, Row, append_row, read_rows
from placeopt_papers.run import cells_of, policies_of, run_cell
from placeopt_papers.settings import INSTANCES, select, settings

PAIR = "sc17-alexnet-1-spread-beside-1"
AGAIN = (
    Cell("sc17-workloads-5-rate", "topo-aware-p"),
    Cell("sc17-workloads-100", "sc17-bf"),
    Cell("dynamoml-12", "dynamoml", 1),
    Cell("dynamoml-12", "k8s-scaling", 0, constant="SPREAD_THOUSANDTHS", factor=0.5),
    Cell("horus-w-large", "horus", 2),
    Cell("genie-5", "min-min", 0),
    Cell("fgd-openb", "fgd:points", 42),
)
"""Simulated again by the test."""


def test_measures_of_three_jobs_on_one_machine() -> None:
    """Two of 2 GPUs run at once for 10 and 20 s; the third, of 4 GPUs, waits 20 s and takes 10."""
    jobs = [timed("a", 0, 10_000, gpus=2), timed("b", 0, 20_000, gpus=2), timed("c", 0, 10_000, gpus=4)]
    history = simulate(scenario(jobs), policy(strict=True))
    found = measure_all(summarise(history), history)
    assert found["last_end_s"] == 30.0
    assert found["makespan_min"] == 0.5
    assert found["run_s"] == pytest.approx(40 / 3)
    assert found["wait_s"] == pytest.approx(20 / 3)
    assert found["normalised"] == pytest.approx((1 + 1 + 3) / 3)
    assert found["first_slowdown"] == 1.0
    assert found["training_min"] == pytest.approx(40 / 3 / 60)
    assert found["in_time_percent"] is None
    assert found["gpu_at_once_percent"] == pytest.approx(200 / 3)


def test_occupancy_while_jobs_come() -> None:
    """Two of four GPUs are active for the eight seconds until the last job comes; what follows does not count."""
    jobs = [timed("a", 0, 10_000, gpus=2), timed("b", 8_000, 90_000)]
    history = simulate(scenario(jobs), policy())
    assert measure_all(summarise(history), history)["active_percent"] == 50.0


def test_services_are_left_out() -> None:
    """They have no end of their own, and nothing to be slowed by (regression: divided by no run time)."""
    mix = settings()["dynamoml-12"].make()
    assert isinstance(mix, Scenario)
    first = next(arrival for arrival in mix.arrivals if arrival.service)
    service = first.model_copy(update={"job": first.job.model_copy(update={"arrival_ms": 0}), "leaves_ms": 5_000})
    made = scenario([timed("a", 0, 10_000)])
    history = simulate(made.model_copy(update={"arrivals": (service, *made.arrivals)}), policy())
    found = measure_all(summarise(history), history)
    assert (found["first_slowdown"], found["wait_s"]) == (1.0, 0.0)


def test_no_mean_over_jobs_that_ended_where_some_never_end() -> None:
    """Who leaves the first job out would be best."""
    history = simulate(scenario([timed("huge", 0, 1000, gpus=5), timed("a", 0, 1000)]), policy("best-fit"))
    found = measure_all(summarise(history), history)
    assert found["wait_s"] is found["makespan_min"] is found["slowed"] is None
    assert found["gpu_at_once_percent"] == 50.0
    assert found["utilisation_percent"] is not None


FIRST = {one.scenario: one.name for one in reversed(settings().values())}
"""Of every function that makes scenarios, the first setting."""


@pytest.mark.parametrize("name", FIRST.values())
def test_settings_make_scenarios(name: str) -> None:
    """The same seed makes the same one; another seed another where it is drawn; a trace of others is named."""
    setting = settings()[name]
    if setting.scenario.startswith("utilisation:"):
        pytest.importorskip("onnx")
    if setting.paper == "traces" and setting.drawn:
        with pytest.raises(BadInput, match="no such file"):
            setting.make(1)
        return
    first, other = setting.make(1), setting.make(2)
    assert isinstance(first, OneAtATime) == (setting.paper == "fgd")
    assert first == setting.make(1)
    assert (first != other) == setting.drawn


def test_one_name_one_scenario() -> None:
    """A setting that bears the name of a stored scenario is that scenario, and no two settings are one."""
    made = {
        one.name: one.make(0, full=True)
        for one in settings().values()
        if one.scenario == "placeopt_papers.stored:stored"
    }
    for name, found in made.items():
        for path in (INSTANCES / "papers").glob(f"{name}.json*"):
            assert found == read_scenario(path)
    names = [found.name for found in made.values() if isinstance(found, Scenario)]
    assert len(names) == len(set(names))
    assert made["sc17-workloads-5"].physics.rule == "sc17"
    assert made["sc17-workloads-5-rate"].physics.rule == "rate"


def test_a_constant_makes_another_scenario() -> None:
    """Each that a figure names, but for the best cores of one model, of which half is no other month."""
    varied = {cell.constant: cell.setting for cell in cells_of(settings().values(), range(1)) if cell.constant}
    for constant, name in varied.items():
        assert settings()[name].make(0, factors={constant: 0.5}) != settings()[name].make(0), (name, constant)
    assert {constant for figure in figures() for constant in figure.constants} - varied.keys() == {"KINDS"}


def test_the_data_fit_together() -> None:
    """Measures, settings and kinds that figures and orders name are there; a fitted figure names its constant."""
    for figure in figures():
        assert {setting for setting, _ in figure.needs} <= set(settings())
        assert figure.form in ("", "worked") or figure.measure in MEASURES
        assert (figure.theirs is None) == bool(figure.said), figure
        assert (figure.form == "") == (figure.kind == "no data"), figure
        assert figure.constants or figure.kind != "fitted", figure
    for order in orders():
        assert order.setting in settings()
        assert order.measure in MEASURES
    for row in beliefs():
        assert set(filter(None, row.settings)) <= set(settings())
        assert row.measure in MEASURES
    for setting in settings().values():
        assert set(setting.beside) <= set(MEASURES)


def test_beliefs_differ_and_what_is_true_does_not() -> None:
    """Twice or half the truth, alike for all tasks of a model, and what is measured corrects them."""
    plain, twice = (settings()[name].make(1) for name in ("genie-5", "genie-5-twice-measured"))
    assert isinstance(plain, Scenario)
    assert isinstance(twice, Scenario)
    assert [one.job for one in twice.arrivals] == [one.job for one in plain.arrivals]
    assert (plain.physics.telemetry, twice.physics.telemetry) == (False, True)
    factors: dict[str | None, set[float]] = {}
    for one in twice.arrivals:
        for option, seen in zip(one.job.options, one.seen.options, strict=True):
            factors.setdefault(one.job.profile, set()).add(round((seen.latency_ms or 0) / (option.latency_ms or 1), 1))
    assert {frozenset(found) for found in factors.values()} == {frozenset({0.5}), frozenset({2.0})}


@pytest.mark.parametrize("cell", AGAIN, ids=lambda cell: f"{cell.setting}-{cell.policy}")
def test_rows_are_what_a_simulation_gives_today(cell: Cell) -> None:
    """Some of the cheap ones, measure by measure."""
    stored, again = read_rows(RESULTS)[cell], run_cell(cell)
    assert isinstance(again, Row)
    assert {name: again.figures[name] for name in stored.figures} == pytest.approx(dict(stored.figures))


def test_what_has_a_row_is_not_simulated_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also after a line was cut off; a line that is no row is named; of unknown names the known ones are listed."""
    path = tmp_path / "rows.jsonl"
    assert main(["run", PAIR, "--results", str(path)]) == 0
    (row,) = read_rows(path).values()
    assert row.figures["first_slowdown"] == pytest.approx(1.318, abs=1e-3)
    before = path.read_bytes()
    path.write_bytes(before + b'{"setting":"sc17')
    assert main(["run", PAIR, "--results", str(path)]) == 0
    assert "0 of 1 simulations to run" in capsys.readouterr().out
    path.write_bytes(before + b'{"setting":3}\n')
    assert main(["tables", "--all", "--results", str(path)]) == 3
    assert "rows.jsonl:2: no row" in capsys.readouterr().err
    assert main(["run", PAIR, "--results", str(tmp_path / "nowhere" / "rows")]) == 3
    assert "nowhere" in capsys.readouterr().err
    assert main(["run", "nothing"]) == 3
    assert "'nothing' is neither a paper (sc17" in capsys.readouterr().err


def test_a_scenario_is_written_and_can_be_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In full size; a list that is played one at a time is none."""
    out = tmp_path / "small.json"
    assert main(["scenario", "horus-w-small", "--seed", "3", "--out", str(out)]) == 0
    assert "horus-w-small-s3, 100 jobs on 3 nodes" in capsys.readouterr().out
    assert read_scenario(out).name == "horus-w-small-s3"
    assert main(["scenario", "fgd-openb", "--out", str(out)]) == 3
    assert main(["list"]) == 0
    assert "horus-trace: Horus 6.2" in capsys.readouterr().out


def test_a_missing_trace_leaves_its_setting_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the file; nothing is written."""
    path = tmp_path / "rows.jsonl"
    assert main(["run", "philly", "--results", str(path), "--instances", str(tmp_path)]) == 0
    assert "left out" in capsys.readouterr().out
    assert not path.exists()


def test_cells_are_of_what_the_tables_need(tmp_path: Path) -> None:
    """Seeds as asked unless fixed, 0 without a draw; in full size only where it is smaller by default; rows survive."""
    assert policies_of(settings()["sc17-workloads-5"])[-1] == "placeopt"
    assert {cell.seed for cell in cells_of(select(["sc17-table-1"]), [3, 4])} == {0}
    assert {cell.seed for cell in cells_of(select(["fgd"]), [3])} == set(range(42, 52))
    assert all(cell.full for cell in cells_of(select(["sc17-10kx1k"]), [3], full=True))
    assert not any(cell.full for cell in cells_of(select(["genie-5"]), [3], full=True))
    row = Row(Cell("soda-month", "soda", 1, True), "abc", 1.5, {"wait_s": None, "active_percent": 3.5}, 7, 1, "why")
    append_row(tmp_path / "rows", row)
    assert read_rows(tmp_path / "rows") == {row.cell: row}
