"""Capacity questions by replay, on traces small enough to play by hand."""

import json
import threading
from pathlib import Path

import pytest
from joblib import parallel_config

from placeopt import BadInput
from placeopt.build import job, machine, nodes
from placeopt.build import scenario as build_scenario
from placeopt.documents import loads
from placeopt.edits import Patch
from placeopt.scheduling import named_policy
from placeopt.simulation import Arrival, Scenario, simulate
from placeopt.simulation.replay import (
    ReplaySeries,
    add,
    compare,
    measures_of,
    parse_goal,
    parse_settings,
    patch_scenario,
    with_drawn_arrivals,
)

FCFS = named_policy("fcfs")


def trace(*arrivals: int, gpus: int = 1, seconds: int = 100) -> Scenario:
    """Return one node with one GPU, and jobs that arrive at these seconds and run so long each."""
    jobs = (job(f"j{i}", gpus=gpus, arrival_ms=1000 * at, run_time_ms=1000 * seconds) for i, at in enumerate(arrivals))
    box = machine("box", 1, cpu_millicores=0, memory_mib=0)
    return build_scenario(nodes(1, "box", price_milli_per_hour=500), jobs, machines=[box], name="trace")


def service(arrival_ms: int = 0) -> Arrival:
    """Return a service that leaves at 50 s."""
    held = job("s", gpus=0, kind="inference", arrival_ms=arrival_ms)
    return Arrival(job=held, service=True, leaves_ms=50_000)


def patch(*steps: dict[str, object]) -> Patch:
    """Return a patch of these steps."""
    return Patch.model_validate_json(json.dumps({"name": "changes", "steps": steps}))


FOUR = trace(0, 0, 0, 0)
"""Waits of 0, 100, 200 and 300 s on one node; 0, 0, 100, 100 on two; 0, 0, 0, 100 on three."""


@pytest.mark.parametrize(
    ("goal", "found", "missed"),
    [("max_wait<=100s", 1, 0), ("mean_wait<=25s", 2, 1), ("max_wait<=0s", 3, 2), ("max_wait<=5m", 0, None)],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_fewest_nodes(goal: str, found: int, missed: int | None, jobs: int) -> None:
    """As the waits by hand say; however many are tried at once."""
    curve = add(FOUR, FCFS, "box", parse_goal(goal), jobs=jobs)
    assert (curve.found, curve.missed, curve.monotone) == (found, missed, True)
    by_hand = {0: [0, 100, 200, 300], 1: [0, 0, 100, 100], 2: [0, 0, 0, 100]}
    for spot in curve.spots:
        waits = by_hand.get(int(spot.setting), [0, 0, 0, 0])
        assert spot.mean == (max(waits) if goal.startswith("max") else sum(waits) / 4)


def test_stopped_before_anything_was_played() -> None:
    """Nothing is known then: the page does not say that the goal is not met."""
    cancel = threading.Event()
    cancel.set()
    curve = add(FOUR, FCFS, "box", parse_goal("max_wait<=1s"), cancel=cancel)
    assert (curve.spots, curve.left) == ((), 1)
    assert "not known" in curve.view().title


def test_a_goal_that_nodes_do_not_meet() -> None:
    """Nobody waits with three more: the search ends there. A job that never fits has no end."""
    curve = add(FOUR, FCFS, "n0", parse_goal("max_completion<=50s"))
    assert curve.found is None
    assert max(int(spot.setting) for spot in curve.spots) <= 4
    assert curve.price_milli_per_hour == 500
    never = add(trace(0, 5, gpus=2), FCFS, "box", parse_goal("p95_wait<=1h"), most=3)
    assert never.found is None
    assert {(spot.mean, spot.stranded) for spot in never.spots} == {(None, 2)}


def test_an_answer_needs_all_above_it(tmp_path: Path) -> None:
    """
    Where more nodes make it worse, what is found is the number from which on all that were tried meet the goal.

    Rows that another question has kept are read instead of running again, so that these say what the waits are.
    """
    rows, world = tmp_path / "rows.jsonl", trace(*range(9))
    compare(*parse_settings("nodes:box=0-5", world, FCFS, policies=named_policy, patches=str), "max_wait", rows=rows)
    kept = [json.loads(line) for line in rows.read_text().splitlines()]
    for row in kept:
        row["answer"]["measures"]["max_wait"] = {1: 9.0, 3: 5.0, 6: 0.5}.get(row["answer"]["nodes"], 1.0)
    rows.write_text("".join(json.dumps(row) + "\n" for row in kept))
    curve = add(world, FCFS, "box", parse_goal("max_wait<=2s"), rows=rows)
    assert (curve.found, curve.missed, curve.monotone) == (3, 2, False)


def test_draws_give_an_interval_and_rows_are_not_run_twice(tmp_path: Path) -> None:
    """The second call runs nothing; a line that was cut off is run again."""
    rows = tmp_path / "rows.jsonl"
    goal, world = parse_goal("mean_wait<=30s"), trace(0, 10, 30, 300, 310, 500)
    first = add(world, FCFS, "box", goal, draws=(0, 1, 2), rows=rows)
    assert first.kept == 0
    for spot in first.spots:
        assert len(spot.values) == 3
        assert 0 <= (spot.low or 0) <= (spot.mean or 0) <= (spot.high or 0)
    lines = rows.read_text().splitlines()
    assert len(lines) == len({json.loads(line)["part"] for line in lines}) == 3 * len(first.spots)
    rows.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:40])
    told: list[int] = []
    again = add(world, FCFS, "box", goal, draws=(0, 1, 2), rows=rows, on_news=lambda done, _: told.append(done))
    assert (len(told), again.kept) == (1, len(lines) - 1)
    lines[0] = lines[0].replace('"question":"', '"question":"of other measures')
    rows.write_text("\n".join(lines) + "\n")
    assert add(world, FCFS, "box", goal, draws=(0, 1, 2), rows=rows).kept == len(lines) - 1
    lines = rows.read_text().splitlines()
    third = add(world, FCFS, "box", goal, draws=(0, 1, 2), rows=rows, on_news=lambda *_: pytest.fail("ran again"))
    assert third.spots == again.spots == first.spots
    assert len(rows.read_text().splitlines()) == len(lines)


def test_runs_use_the_backend_of_joblib() -> None:
    """With ``jobs=None``: the same curve by threads and by processes as one after the other."""
    goal, world = parse_goal("max_wait<=100s"), trace(0, 10, 30, 300)
    alone = add(world, FCFS, "box", goal, draws=(0, 1))
    for backend in ("threading", "loky"):
        with parallel_config(backend=backend, n_jobs=2):
            assert add(world, FCFS, "box", goal, draws=(0, 1), jobs=None).spots == alone.spots


WRONG = "arrivals arrivals=0 nodes=1 nodes:none=1 policy= policy=fcfs,fcfs load=1 demand=50 patch=bad"


def test_comparisons(tmp_path: Path) -> None:
    """Arrivals at half the rate do not meet; policies and patches by name; rows are shared with other questions."""
    world, rows = trace(0, 100, 200), tmp_path / "rows.jsonl"
    more, bad = {"do": "add_nodes", "machine": "box", "count": 1}, {"do": "remove_jobs", "jobs": ["nobody"]}
    patches = {"more": patch(more), "bad": patch(bad)}

    def curve(text: str, measure: str = "max_wait") -> ReplaySeries:
        varied, found = parse_settings(text, world, FCFS, policies=named_policy, patches=patches.__getitem__)
        return compare(varied, found, measure, rows=rows, goal=parse_goal("max_wait<=10s"))

    assert [spot.mean for spot in curve("arrivals=50,100,200").spots] == [0.0, 0.0, 100.0]
    assert [spot.met for spot in curve("arrivals=100,200").spots] == [True, False]
    assert curve("arrivals=100,200").kept == 2
    assert [spot.nodes for spot in curve("nodes:box=0-2").spots] == [1, 2, 3]
    assert [spot.setting for spot in curve("policy=fcfs,srtf").spots] == ["fcfs", "srtf"]
    assert [spot.nodes for spot in curve("patch=more").spots] == [2]
    for wrong in WRONG.split():
        with pytest.raises(BadInput):
            curve(wrong)
    with pytest.raises(BadInput, match="p95_wait"):
        curve("arrivals=100", measure="waiting")


def test_measures_by_hand() -> None:
    """Four jobs on one GPU: waits 0, 100, 200, 300; the 95th percentile lies 85 % between the last two."""
    found = measures_of(simulate(FOUR, FCFS))
    with pytest.raises(BadInput, match="p95_wait") as told:
        parse_goal("wait<=1s")
    assert [name for name in found if name not in str(told.value)] == []
    assert (found["mean_wait"], found["median_wait"], found["max_wait"]) == (150.0, 150.0, 300.0)
    assert found["p95_wait"] == pytest.approx(285.0)
    assert (found["max_completion"], found["max_slowdown"], found["makespan"]) == (400.0, 4.0, 400.0)
    assert (found["at_once"], found["in_time"], found["slowed"], found["delayed"]) == (25.0, None, 0.0, 0.0)


def test_services_do_not_count() -> None:
    """They have no run time to be slowed by and end with what they serve: mean slowdown was 800,000 with replicas."""
    world = FOUR.model_copy(update={"arrivals": (*FOUR.arrivals, service())})
    assert measures_of(simulate(world, FCFS)) == measures_of(simulate(FOUR, FCFS))


def test_one_stranded_job_of_forty_has_a_percentile_but_no_mean() -> None:
    """It waits without end, and so counts above every other."""
    world = trace(*range(0, 3900, 100))
    wide = Arrival(job=job("wide", gpus=2, arrival_ms=3_900_000, run_time_ms=1))
    history = simulate(world.model_copy(update={"arrivals": (*world.arrivals, wide)}), FCFS)
    found = measures_of(history)
    assert history.stranded == ("wide",)
    assert (found["mean_wait"], found["p95_wait"], found["max_wait"]) == (None, 0.0, None)


@pytest.mark.parametrize(
    ("text", "limit"),
    [("p95_wait<=30m", 1800.0), (" max_slowdown <= 2.5", 2.5), ("in_time>=95%", 95.0), ("slowed<=3", 3.0)],
)
def test_goals(text: str, limit: float) -> None:
    """Units become seconds."""
    assert parse_goal(text).limit == limit


@pytest.mark.parametrize(
    "text",
    ["", "p95_wait", "p95_wait<30m", "p95_wait<=30", "p96_wait<=3m", "in_time<=5%", "max_wait>=3m", "slowed<=3m"],
)
def test_no_goals(text: str) -> None:
    """Named, with what would be one."""
    with pytest.raises(BadInput, match="goal"):
        parse_goal(text)


def test_what_no_job_has_is_not_measured() -> None:
    """Of jobs without a deadline no part ends in time, whatever is added."""
    with pytest.raises(BadInput, match=r"no job of 'trace' has a deadline.*p95_wait"):
        add(FOUR, FCFS, "box", parse_goal("in_time>=90%"))
    varied, found = parse_settings("arrivals=50,100", FOUR, FCFS, policies=named_policy, patches={}.__getitem__)
    with pytest.raises(BadInput, match="no job of 'trace' has a deadline"):
        compare(varied, found, "in_time")
    with pytest.raises(BadInput, match="no node of that name; machine types: box"):
        add(FOUR, FCFS, "crate", parse_goal("max_wait<=1m"))


def test_drawn_arrivals() -> None:
    """As many, within the trace's time, of its jobs; by the seed alone; a job's due date moves with it."""
    world = trace(*range(0, 1000, 10))
    one, same, other = with_drawn_arrivals(world, 1), with_drawn_arrivals(world, 1), with_drawn_arrivals(world, 2)
    assert one == same != other
    assert len(one.arrivals) == 100
    times = [arrival.job.arrival_ms for arrival in one.arrivals]
    assert times == sorted(times)
    assert times[-1] <= 990_000
    with pytest.raises(BadInput, match="two or more"):
        with_drawn_arrivals(trace(0), 0)


def test_patches_on_scenarios() -> None:
    """Nodes, jobs, arrivals and the policy of rounds; what is about a round alone is refused."""
    steps: list[dict[str, object]] = [
        {"do": "add_nodes", "like": "n0", "count": 2},
        {"do": "scale_arrivals", "percent": 50},
        {"do": "remove_jobs", "jobs": ["j0"]},
        {"do": "set_policy", "fields": {"share_mode": "exclusive"}},
    ]
    world, scheduling = patch_scenario(trace(0, 30), FCFS, patch(*steps))
    assert len(world.cluster.nodes) == 3
    assert [arrival.job.arrival_ms for arrival in world.arrivals] == [60_000]
    assert scheduling.policy.share_mode == "exclusive"
    refused: list[tuple[dict[str, object], str]] = [
        ({"do": "scale_demand", "percent": 50}, "scale_arrivals"),
        ({"do": "add_jobs", "jobs": [{"id": "new"}]}, "run_time_ms"),
    ]
    for step, word in refused:
        with pytest.raises(BadInput, match=word):
            patch_scenario(trace(0), FCFS, patch(step))


def test_services_stay_as_long_whenever_they_come() -> None:
    """Half as often is twice as late: one that came at 30 s and left at 50 s had left before it came."""
    world = trace(0, 100).model_copy(update={"arrivals": (*trace(0, 100).arrivals, service(30_000))})
    slower = patch({"do": "scale_arrivals", "percent": 50})
    assert patch_scenario(world, FCFS, slower)[0].arrivals[-1].leaves_ms == 80_000
    for seed in range(5):
        drawn = with_drawn_arrivals(world, seed).arrivals
        assert {one.leaves_ms - one.job.arrival_ms for one in drawn if one.leaves_ms is not None} <= {20_000}


def test_a_changed_job_of_a_trace_is_one_of_a_trace() -> None:
    """It still says how long it runs."""
    change = {"do": "change_job", "job": "j0", "fields": {"options": [{"demand": {"gpus": 1}}]}}
    with pytest.raises(BadInput, match=r"changes: job 'j0' as it is then: .*run_time_ms"):
        patch_scenario(FOUR, FCFS, patch(change))
    change["fields"] = {"options": [{"demand": {"gpus": 1}, "run_time_ms": 7}]}
    assert patch_scenario(FOUR, FCFS, patch(change))[0].arrivals[0].job.options[0].run_time_ms == 7


def test_a_curve_is_a_document(tmp_path: Path) -> None:
    """What --json prints can be read again."""
    curve = add(FOUR, FCFS, "box", parse_goal("max_wait<=100s"))
    assert loads(ReplaySeries, curve.model_dump_json(), source="x") == curve
