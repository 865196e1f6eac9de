"""Runs: what is measured, what is kept, what is run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt import BadInput
from placeopt.model import Scenario
from placeopt.simulation import simulate, summarise
from placeopt_papers import campaign
from placeopt_papers.catalogue import SETTINGS
from placeopt_papers.journal import NAME, open_results, read_results
from placeopt_papers.measures import held_over_time, measure_all, percentiles, slowdowns, waits_s
from placeopt_papers.records import PaperCase, ResultLine
from placeopt_papers.tables import CampaignRows, own_table

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
PAIR = "sc17-alexnet-1-spread-beside-1"


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
    assert waits_s(history) == [0.0, 0.0, 20.0]
    assert slowdowns(history) == [1.0, 1.0, 3.0]
    strips = held_over_time(history, 4)
    assert len(strips) == 100
    assert strips[0][1] == 1.0
    assert strips[50][1] == 0.5
    assert strips[-1] == (pytest.approx(30 / 3600, rel=1e-4), 1.0)
    assert sum(part for _, part in strips) / 100 == pytest.approx(100 / 120, abs=1e-3)


def test_occupancy_while_jobs_come() -> None:
    """Two of four GPUs are active for the eight seconds until the last job comes; what follows does not count."""
    jobs = [timed("a", 0, 10_000, gpus=2), timed("b", 8_000, 90_000)]
    history = simulate(scenario(jobs), policy())
    assert measure_all(summarise(history), history)["active_percent"] == 50.0


def test_services_are_left_out() -> None:
    """They have no end of their own, and nothing to be slowed by (regression: divided by no run time)."""
    mix = SETTINGS["dynamoml-12"].make(0, INSTANCES, False)
    assert isinstance(mix, Scenario)
    first = next(arrival for arrival in mix.arrivals if arrival.service)
    jobs = [timed("a", 0, 10_000), first.job.model_copy(update={"arrival_ms": 0})]
    made = scenario([jobs[0]])
    service = first.model_copy(update={"job": jobs[1], "leaves_ms": 5_000})
    history = simulate(made.model_copy(update={"arrivals": (service, *made.arrivals)}), policy())
    assert measure_all(summarise(history), history)["first_slowdown"] == 1.0
    assert waits_s(history) == [0.0]


def test_percentiles() -> None:
    """From the least to the most; nothing of nothing."""
    assert percentiles([3.0, 1.0])[:1] + percentiles([3.0, 1.0])[50::50] == (1.0, 2.0, 3.0)
    assert percentiles([]) == ()


def test_what_was_run_is_not_run_again(tmp_path: Path) -> None:
    """Also after a line was cut off; but a row of another scenario or policy does not count."""
    case = PaperCase(setting=PAIR, policy="fcfs", seed=0)
    (first,) = campaign.run_cases([case], tmp_path, instances=INSTANCES)
    assert first.figures["first_slowdown"] == pytest.approx(1.318, abs=1e-3)
    before = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(before + b'{"row": {"case"')
    assert campaign.run_cases([case], tmp_path, instances=INSTANCES) == [first]
    assert (tmp_path / NAME).read_bytes() == before
    stale = first.model_copy(update={"scheduling": "another"})
    with open_results(tmp_path) as file:
        file.append(ResultLine(row=stale))
    (again,) = campaign.run_cases([case], tmp_path, instances=INSTANCES)
    assert again.scheduling == first.scheduling
    starts, rows = read_results(tmp_path)
    assert len(starts) == 2
    assert rows == {case: again}


def test_runs_with_endpoints_are_kept_too(tmp_path: Path) -> None:
    """The simulation makes jobs of them, so its scenario is another (regression: it was run again and again)."""
    case = PaperCase(setting="dynamoml-12", policy="dynamoml", seed=0)
    (row,) = campaign.run_cases([case], tmp_path, instances=INSTANCES)
    assert campaign.is_current(case, row, INSTANCES)
    older = {name: value for name, value in row.figures.items() if name != "training_min"}
    assert not campaign.is_current(case, row.model_copy(update={"figures": older}), INSTANCES), "compared only since"


def test_jobs_one_at_a_time_are_kept_too(tmp_path: Path) -> None:
    """By the files, the seed and the score."""
    case = PaperCase(setting="fgd-openb", policy="best_fit:points", seed=42)
    (row,) = campaign.run_cases([case], tmp_path, instances=INSTANCES)
    assert row.figures["allocated_100_percent"] == pytest.approx(92.86, abs=0.5)
    assert campaign.is_current(case, row, INSTANCES)
    assert not campaign.is_current(case.model_copy(update={"seed": 43}), row, INSTANCES)


def test_ours_one_at_a_time_beside_fgd_s() -> None:
    """By the same order of arrival: prices leave less of the cluster unused than FGD, and the table says so."""
    cases = [PaperCase(setting="fgd-openb", policy=score, seed=42) for score in ("prices", "fgd:points")]
    rows = [row for case in cases if (row := campaign.run_case(case, instances=INSTANCES)) is not None]
    table = own_table([SETTINGS["fgd-openb"]], CampaignRows(rows))
    ours = table.columns.index("prices - it")
    assert [(row[2], str(row[ours]).partition(" ")[2]) for row in table.rows] == 2 * [
        ("fgd:points", "better"),
        ("prices", ""),
    ]


def test_only_one_command_writes(tmp_path: Path) -> None:
    """Two would mix their lines."""
    with open_results(tmp_path), pytest.raises(BadInput, match="another run"):
        open_results(tmp_path)


def test_broken_lines_are_named(tmp_path: Path) -> None:
    """With file and line."""
    (tmp_path / NAME).write_text('{"row": 3}\n')
    with pytest.raises(BadInput, match=r"results\.jsonl:1: row"):
        read_results(tmp_path)
    with pytest.raises(BadInput, match=r"results\.jsonl"):
        read_results(tmp_path / "nowhere")


def test_plans_leave_out_what_does_not_exist() -> None:
    """A setting without seeds is run once; one that is reduced is another case in full size."""
    plain = campaign.plan_cases([SETTINGS["sc17-table-1"]], [3, 4], whole=True, instances=INSTANCES)
    assert {case.seed for case in plain} == {0}
    assert not any(case.whole for case in plain)
    assert all(
        case.whole for case in campaign.plan_cases([SETTINGS["sc17-10kx1k"]], [3], whole=True, instances=INSTANCES)
    )
    assert [case.seed for case in campaign.plan_cases([SETTINGS["fgd-openb"]], [3], whole=False, instances=INSTANCES)][
        ::8
    ] == [*range(42, 52)]
    genie = campaign.plan_cases([SETTINGS["genie-5"]], range(5), whole=False, instances=INSTANCES)
    assert sorted({case.seed for case in genie if case.policy == "genie"}) == [0, 1, 2, 3, 4]
    large = campaign.plan_cases([SETTINGS["soda-80"]], range(5), whole=False, instances=INSTANCES)
    assert {case.seed for case in large} == {0, 1, 2, 3, 4}
    month = campaign.plan_cases([SETTINGS["soda-month"]], range(5), whole=False, instances=INSTANCES)
    assert {case.seed for case in month if case.policy == "soda"} == {0, 1, 2, 3, 4}
    assert {case.seed for case in month if case.policy == "placeopt"} == {0, 1, 2, 3, 4}  # job by job: as fast as soda
    assert {case.seed for case in month if case.policy == "placeopt-rounds"} == {0, 1, 2}
    assert "no-such-policy" not in {case.policy for case in plain}
    assert campaign.plan_cases([SETTINGS["sia-philly"]], [0], whole=False, instances=INSTANCES / "nowhere") == []


LARGE = {"soda-whole"}
"""Made by the function of a smaller setting."""


@pytest.mark.parametrize(
    "name", [name for name, one in SETTINGS.items() if not one.reduced and not one.needs and name not in LARGE]
)
def test_settings_make_scenarios(name: str) -> None:
    """The same seed makes the same one; another seed another where it is drawn."""
    setting = SETTINGS[name]
    first = setting.make(1, INSTANCES, False)
    assert first.digest == setting.make(1, INSTANCES, False).digest
    assert (first.digest != setting.make(2, INSTANCES, False).digest) == setting.seeded
    assert setting.one_at_a_time != isinstance(first, Scenario)


def test_no_mean_over_jobs_that_ended_where_some_never_end() -> None:
    """Issue 16, C5: who leaves the first job out would be best; the row says how many never end, and why."""
    history = simulate(scenario([timed("huge", 0, 1000, gpus=5), timed("a", 0, 1000)]), policy("best-fit"))
    row = campaign.row_of(PaperCase(setting=PAIR, policy="best-fit", seed=0), "", history, 0.0)
    assert (row.jobs, row.never_end) == (2, 1)
    assert row.why == "huge: finds no place on the idle cluster: GPU count (5 GPUs)"
    assert row.figures["wait_s"] is row.figures["makespan_min"] is row.figures["slowed"] is None
    assert row.figures["gpu_at_once_percent"] == row.figures["at_once_percent"] == 50.0
    assert row.figures["utilisation_percent"] is not None
