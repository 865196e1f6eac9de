"""What the driver for Slurm makes jobs worth, and that it leaves alone what runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from drivers.driver_steps import driver, started
from drivers.fake_slurm import FakeJob, FakeSlurm
from placeopt import Engine
from placeopt.cli.run import run
from placeopt.drivers.slurm import SlurmDriver, SlurmOptions
from placeopt.importers import DEFAULT_RULE, PriorityRule
from placeopt.model import MAX_VALUE, Changes, Instance, Policy
from placeopt.scheduling import Scheduling

RULE = PriorityRule(value_per_gpu=2000, value_per_gpu_of={"urgent": 9000}, value_without_gpus=7)


def seen(slurm: FakeSlurm, **options: Any) -> Instance:
    """The round that a driver makes of a reading."""
    engine = Engine(isolation="thread")
    chosen = SlurmOptions(dry_run=True, deterministic=True, **options)
    SlurmDriver(slurm, engine, chosen, clock=lambda: float(slurm.now_s)).run_round()
    return engine.snapshot


@pytest.mark.parametrize(
    ("rule", "worth", "values"),
    [
        (DEFAULT_RULE, "jobs", [1000, 1000, 1000]),
        (DEFAULT_RULE, "gpus", [4000, 2000, 1]),
        (RULE, "jobs", [2000, 9000, 2000]),
        (RULE, "gpus", [8000, 18000, 7]),
    ],
)
def test_values_follow_from_classes_and_the_wait_and_not_from_the_order(
    rule: PriorityRule, worth: str, values: list[int]
) -> None:
    """900 s of a limit of 3,600 s: 5 quarters. The order by ``--nice`` and submission is no priority of Slurm's."""
    jobs = [FakeJob("1", gpus=4, nice=-100), FakeJob("2", gpus=2, qos="urgent"), FakeJob("3", gpus=0)]
    found = seen(FakeSlurm(1, jobs), rule=rule, worth=worth)
    assert [job.options[0].value for job in found.jobs] == [5 * value for value in values]
    assert found.jobs[0].priority != found.jobs[1].priority


def test_a_value_stays_within_its_bound() -> None:
    """The instance is copied without validation, so nothing else would notice."""
    long = FakeJob("1", nodes=4, gpus=4, limit_min=1, submitted_s=0)
    found = seen(FakeSlurm(4, [long]), rule=PriorityRule(value_per_gpu=1_000_000), worth="gpus")
    assert found.jobs[0].options[0].value == MAX_VALUE


def test_the_rule_decides_who_starts() -> None:
    jobs = [FakeJob("1", gpus=4), FakeJob("2", gpus=4, qos="urgent")]
    running = driver(FakeSlurm(1, jobs), rule=RULE)
    assert started(running.run_round()).keys() == {"2"}


def test_what_runs_is_left_alone_though_its_owner_and_the_policy_allow_more() -> None:
    """A plan that needs a preemption would start nothing in this round."""
    victim = FakeJob("1", gpus=4, state="RUNNING", on=["n0"], comment="placeopt.preemptible placeopt.movable")
    jobs = [victim, FakeJob("2", gpus=4, qos="urgent"), FakeJob("3", gpus=1)]
    slurm = FakeSlurm(1, jobs)
    assert not any(held.movable or held.preemptible for held in seen(slurm).running)
    policy = Scheduling(name="own", policy=Policy(changes=Changes(moves_max=5, preemptions_max=5)))
    running = driver(slurm, rule=RULE, policy=policy)
    record = running.run_round()
    assert (record.actions, dict(record.not_done)) == ([], {})


@pytest.mark.parametrize("host", ["slurm", "kubernetes"])
def test_a_rule_that_is_none_is_bad_input(host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rule.json"
    path.write_text(json.dumps({"value_per_gpu": 0}))
    assert run([host, "run", "--priority-rule", str(path)]) == 3
    assert "value_per_gpu" in capsys.readouterr().err
