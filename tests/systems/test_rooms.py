"""The rooms of systems: found through entry points, with rules, policies, scenarios and predictors."""

import csv
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from helpers.command_line import Cli
from helpers.live_host import Host
from helpers.scenarios import policy, scenario, timed
from placeopt import BadInput, Engine, read_instance, read_scenario, write_document
from placeopt.build import instance, job
from placeopt.documents import read_document
from placeopt.errors import BadArgument
from placeopt.model import Instance
from placeopt.rooms import load_rooms
from placeopt.scheduling import (
    QUEUE_ORDERS,
    LiveScheduler,
    ScenarioMaker,
    Scheduling,
    System,
    load_systems,
    named_policy,
    plan_round,
    policy_names,
    predictors,
    sorted_by,
    system_scenario,
    system_scenarios,
)
from placeopt.simulation import simulate
from placeopt.systems.predictors import applied, fit_predictor

ROOMS = ("dynamoml", "genie", "horus", "sc17", "soda")


def test_five_systems_are_found() -> None:
    """Each with policies that name the paper, and with a scenario that its own policy plays to the end."""
    found = load_systems()
    assert tuple(found) == ROOMS
    for name, system in found.items():
        own = {entry.name.removesuffix(".json") for entry in system.policies.iterdir()}
        assert own <= set(policy_names()), name
        assert all(named_policy(one).source is not None for one in own)
        assert system.scenarios, name


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("sc17-table-1", "topo-aware-p"),
        ("horus-w-small", "horus-f"),
        ("genie-6h", "genie"),
        ("dynamoml-12", "dynamoml"),
        ("soda-day", "soda"),
    ],
)
def test_a_scenario_of_a_paper_is_played(cli: Cli, tmp_path: Path, name: str, rules: str) -> None:
    """Written by the command line, it is what Python makes, and the paper's own policy ends all of its jobs."""
    out = tmp_path / "scenario.json"
    assert cli("generate", "--scenario", name, "--seed", "3", "--out", out).code == 0
    made = read_scenario(out)
    assert made == system_scenario(name, 3)
    history = simulate(made, named_policy(rules))
    assert history.finished
    assert len(history.jobs) >= len(made.arrivals)


def test_an_unknown_scenario_lists_those_that_there_are(cli: Cli, tmp_path: Path) -> None:
    done = cli("generate", "--scenario", "nix", "--out", tmp_path / "x.json")
    assert done.code == 2
    assert all(name in done.err for name in system_scenarios())
    assert not (tmp_path / "x.json").exists()


def test_the_model_knows_the_costs_of_rooms() -> None:
    """It imports none: a policy that weighs the cost of a paper is read where nothing else was loaded."""
    reads = "Policy.model_validate({'weights': {'communication': 0, 'horus': 400}}).weights['horus']"
    code = f"import sys; from placeopt.model import Policy; assert 'placeopt.terms' not in sys.modules; print({reads})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "400\n"


def test_another_package_brings_a_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its entry point is enough: policies name its rule, and its policies and scenarios are there by name."""
    (tmp_path / "mine.json").write_text(
        '{"name": "mine", "rounds": "each", "method": "best-fit", "order": {"rule": "widest"}}'
    )
    QUEUE_ORDERS.register("widest", sorted_by(lambda one: (-one.options[0].demand.gpus, one.arrival_ms)))
    global THEIRS
    THEIRS = System("none", tmp_path, {"two": ScenarioMaker("two jobs", f"{__name__}:two_jobs", drawn=False)})
    found = [EntryPoint("theirs", f"{__name__}:THEIRS", "placeopt.systems")]
    load_rooms.cache_clear()
    monkeypatch.setattr("placeopt.rooms.entry_points", lambda group: found)
    try:
        assert "mine" in policy_names()
        history = simulate(system_scenario("two"), named_policy("mine"))
        assert [one.start_ms for one in history.jobs] == [1000, 0]
    finally:
        load_rooms.cache_clear()


THEIRS: System


def two_jobs() -> object:
    """One GPU and four, which come at once."""
    return scenario([timed("narrow", 0, 1000), timed("wide", 0, 1000, gpus=4)])


def write_table(path: Path, rows: list[dict[str, object]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


RUNS = [
    {"profile": "vgg", "nodes": n, "gpus": g, "batch": 32 * n * g, "rate": rate}
    for n, g, rate in ((1, 1, 100.0), (1, 2, 180.0), (2, 1, 150.0))
]
TASKS = [{"profile": "vgg", "batch": 64, "iterations": 90}]


def test_rates_of_a_table_become_what_policies_believe(cli: Cli, tmp_path: Path) -> None:
    """
    GENIE eq. 4 to 8 by hand: alone 100 a second at a local batch of 32; on 1 x 2 GPUs 180 of 200, so a penalty of 0.2.

    64 x 90 samples at 180 a second take 32 s. Jobs of other profiles keep what they state.
    """
    model, out = tmp_path / "model.json", tmp_path / "out.json"
    done = cli("predict", "fit", "genie-rates", write_table(tmp_path / "runs.csv", RUNS), "--out", model)
    assert done.code == 0
    assert "genie-rates: 3 rows; 3 pairs, relative error: mean 0.0 %" in done.out
    jobs = [job("a", gpus=2, profile="vgg", run_time_ms=5), job("b", gpus=2, profile="bert", run_time_ms=5)]
    write_document(tmp_path / "round.json", instance(2, jobs))
    tasks = write_table(tmp_path / "tasks.csv", TASKS)
    done = cli("predict", "apply", model, tmp_path / "round.json", "--table", tasks, "--out", out)
    assert done.code == 0
    assert "predicted for 1 jobs" in done.out
    first, second = read_instance(out).jobs
    assert (first.options[0].run_time_ms, first.options[0].rate_milli) == (32_000, 180_000)
    assert second == jobs[1]
    played = scenario([timed("a", 0, 5000, gpus=2, profile="vgg")])
    write_document(tmp_path / "scenario.json", played)
    assert cli("predict", "apply", model, tmp_path / "scenario.json", "--table", tasks, "--out", out).code == 0
    arrival = read_scenario(out).arrivals[0]
    assert arrival.job == played.arrivals[0].job
    assert arrival.estimates[0].run_time_ms == 32_000
    assert [one.end_ms for one in simulate(read_scenario(out), policy()).jobs] == [5000]


def test_memory_by_a_formula_needs_no_fit(cli: Cli, tmp_path: Path) -> None:
    """Horus eq. 2: (2 x 1 Mi + 3 Mi + 2 x 1 Mi) x 4 bytes = 28 MiB, and 100 to begin with."""
    row = {"profile": "vgg", "batch": 2, "activations": 2**20, "parameters": 3 * 2**20, "startup_mib": 100}
    table, out = write_table(tmp_path / "t.csv", [row]), tmp_path / "out.json"
    write_document(tmp_path / "round.json", instance(1, [job("a", gpus=1, profile="vgg")]))
    assert cli("predict", "apply", "horus-memory", tmp_path / "round.json", "--table", table, "--out", out).code == 0
    assert read_instance(out).jobs[0].options[0].demand.gpu_memory_mib == 128


def test_utilisation_is_learned_from_any_features() -> None:
    """A tree finds a step; both sides of it are predicted as they were measured."""
    rows = [
        {"profile": f"m{n}", "flops": str(10**n), "gpu_utilisation_percent": "20" if n < 10 else "80"}
        for n in range(20)
    ]
    fitted = fit_predictor("horus-utilisation", rows, source="made up")
    round_ = instance(1, [job("small", gpus=1, profile="m1"), job("large", gpus=1, profile="m18")])
    made, jobs = applied("horus-utilisation", fitted, rows, round_)
    assert jobs == 2
    assert isinstance(made, Instance)
    assert [one.options[0].demand.gpu_utilisation_percent for one in made.jobs] == [20, 80]
    assert fitted.held_out.startswith("root mean square log error of rows left out 0.")


def test_pairs_become_slowdowns() -> None:
    """Half the rate is twice the time: an excess of 1000 thousandths. A scenario's own are what is true in it."""
    ratios = {("a", "a"): "0.5", ("a", "b"): "0.8", ("b", "a"): "0.5", ("b", "b"): "0.8"}
    rows = [{"profile": one, "beside": other, "ratio": ratio} for (one, other), ratio in ratios.items()]
    with pytest.raises(BadInput, match="expected at least 5"):
        fit_predictor("sc17-pairs", rows, source="made up")
    rows += [{"profile": "c", "beside": other, "ratio": "1"} for other in "abc"]
    fitted = fit_predictor("sc17-pairs", rows, source="made up")
    made, jobs = applied("sc17-pairs", fitted, [], instance(1, [job("j", gpus=1, profile="a")]))
    assert jobs == 1
    assert isinstance(made, Instance)
    found = {(one.profile, one.beside): one.gpu_thousandths for one in made.slowdowns}
    assert (found["a", "a"], found["a", "b"], ("c", "a") in found) == (1000, 250, False)
    with pytest.raises(BadInput, match="apply them to a round"):
        applied("sc17-pairs", fitted, [], scenario([timed("j", 0, 1)]))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("fit", "nix", "runs.csv"), "known: genie-rates"),
        (("fit", "horus-memory", "runs.csv"), "needs no fit"),
        (("fit", "horus-utilisation", "runs.csv"), "no column 'gpu_utilisation_percent'"),
        (("fit", "genie-rates", "odd.csv"), "rate: 'x'; expected a number"),
        (("fit", "genie-rates", "none.csv"), "no rows"),
        (("fit", "genie-rates", "missing.csv"), "cannot be read"),
        (("apply", "genie-rates", "round.json", "--table", "runs.csv"), "has to be fitted first"),
        (("apply", "round.json", "round.json", "--table", "runs.csv"), "round.json: document"),
        (("apply", "horus-memory", "round.json", "--table", "bare.csv"), "no 'profile'"),
        (("apply", "horus-memory", "round.json", "--table", "runs.csv"), "activations: None; expected a number"),
    ],
)
def test_what_cannot_be_predicted_is_refused(cli: Cli, tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    """In a line, and nothing is written."""
    write_table(tmp_path / "runs.csv", RUNS)
    write_table(tmp_path / "odd.csv", [{**RUNS[0], "rate": "x"}])
    write_table(tmp_path / "bare.csv", [{"batch": 1}])
    (tmp_path / "none.csv").write_text("profile,nodes\n")
    write_document(tmp_path / "round.json", instance(1, [job("a", gpus=1, profile="vgg")]))
    named = [str(tmp_path / word) if "." in word else word for word in words]
    done = cli("predict", *named, "--out", tmp_path / "out.json")
    assert done.code == (2 if "--help" in done.err else 3)
    assert expected in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


def test_every_predictor_stands_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "predictions.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in predictors())
    with pytest.raises(BadArgument, match="no predictor 'nix'"):
        fit_predictor("nix", [], source="")


def test_a_policy_believes_what_is_predicted_wherever_it_is_named(cli: Cli, tmp_path: Path, engine: Engine) -> None:
    """
    GENIE's rates say that vgg takes 32 s and bert, as it says itself, 5: the shortest first is bert, which came last.

    In a simulation, on a live cluster and in a round; what is true stays.
    """
    model, mine = tmp_path / "model.json", tmp_path / "mine.json"
    tasks = write_table(tmp_path / "tasks.csv", TASKS)
    assert cli("predict", "fit", "genie-rates", write_table(tmp_path / "runs.csv", RUNS), "--out", model).code == 0
    done = cli("predict", "policy", "srtf", model, "--table", tasks, "--out", mine)
    assert done.code == 0
    assert "srtf-predicted: believes genie-rates of 1 profiles" in done.out
    rules = read_document(Scheduling, mine)
    jobs = [
        timed("held", 0, 1000, gpus=4),
        timed("vgg", 1, 2000, gpus=4, profile="vgg"),
        timed("bert", 2, 5000, gpus=4, profile="bert"),
    ]
    starts = {one.job: one.start_ms for one in simulate(scenario(jobs), rules).jobs}
    assert (starts["bert"], starts["vgg"]) == (1000, 6000)
    plain = {one.job: one.start_ms for one in simulate(scenario(jobs), named_policy("srtf")).jobs}
    assert (plain["vgg"], plain["bert"]) == (1000, 3000)
    host = Host(scenario(jobs).cluster, jobs={one.id: one for one in jobs[1:]})
    host.turn(LiveScheduler(engine, rules))
    assert set(host.running) == {"bert"}
    plan = plan_round(host.reading().model_copy(update={"running": ()}), rules)
    assert [one.job for one in plan.placements] == ["bert"]


def test_predictions_that_cannot_be_are_refused(cli: Cli, tmp_path: Path) -> None:
    """Of how jobs slow each other; of a model that is none; not fitted."""
    world = scenario([timed("a", 0, 1000)])
    for fields, words in (
        ({"predictor": "nix"}, "known: genie-rates"),
        ({"predictor": "sc17-pairs"}, "slow each other"),
        ({"predictor": "genie-rates"}, "has to be fitted"),
        ({"predictor": "genie-rates", "model": {"x": 1}}, "predictions: genie-rates: "),
        ({"predictor": "horus-memory", "table": ({"batch": "1"},)}, "no 'profile'"),
    ):
        with pytest.raises(BadInput, match=words):
            simulate(world, policy(predictions=(fields,)))
    table = write_table(tmp_path / "bare.csv", [{"batch": 1}])
    done = cli("predict", "policy", "horus", "horus-memory", "--table", table, "--out", tmp_path / "x.json")
    assert done.code == 3
    assert not (tmp_path / "x.json").exists()
