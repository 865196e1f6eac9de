"""Plans that once ended a reader; `properties/test_plan_readers.py` breaks plans at random."""

from pathlib import Path
from typing import Any

import pytest

from helpers.plans import plan_for, with_assignment
from helpers.referee_messages import rules_of
from placeopt import BadInput, audit, violations, write_document
from placeopt.build import instance, job, machine, running
from placeopt.check import Ledger
from placeopt.cli.run import run as run_command
from placeopt.explain import explain
from placeopt.model import Communication, Instance, Interference, Plan, Policy, Postpone, Slowdown
from placeopt.report.terminal import view_page
from placeopt.report.views import plan_view
from placeopt.whatif import after_plan, review

UTILITY = Policy(postpone=Postpone(rule="utility"))


@pytest.mark.parametrize("model", ["pairwise", "worst", "curve"])
def test_a_gpu_that_is_not_there_beside_a_job_with_a_minimal_utility(model: Any) -> None:
    """The utility of ``b`` looks at its neighbour ``a``, whose GPU 9 no part of the machine holds."""
    round_, plan = neighbours(UTILITY.model_copy(update={"interference": Interference(model=model)}))
    assert rules_of(round_, plan) == []
    assert "gpu_indexes" in rules_of(round_, on_gpus(plan, 9))


def test_gpus_given_to_a_job_that_requests_none() -> None:
    """Its shortest path under ``postpone.rule = utility`` was divided by its number of GPUs."""
    wanting = job("a", gpus=0, communication=Communication(weight=1), utility_min_thousandths=900)
    round_ = instance(1, [wanting], policy=UTILITY)
    plan = plan_for(round_, {"a": [("n0", [])]})
    assert rules_of(round_, plan) == []
    assert "gpu_indexes" in rules_of(round_, on_gpus(plan, 0, 1))


def test_empty_lists_are_violations() -> None:
    """No workers, and no assignments, for a job that runs and for one that waits."""
    held = job("a", workers=2)
    round_ = instance(2, [held, job("b")], running=[running(held, [("n0", [0]), ("n1", [0])])])
    plan = plan_for(round_, {"b": [("n0", [1])]})
    assert rules_of(round_, plan) == []
    assert {"workers", "running"} <= set(rules_of(round_, with_assignment(plan, workers=())))
    for at in (0, 1):
        placements = list(plan.placements)
        placements[at] = placements[at].model_copy(update={"assignments": ()})
        assert "workers" in rules_of(round_, plan.model_copy(update={"placements": tuple(placements)}))


@pytest.mark.parametrize("where", [("gone", [0]), ("n0", [9])])
def test_what_runs_on_hardware_that_is_not_listed(where: tuple[str, list[int]]) -> None:
    """The referee and the ledger judge it without raising, whatever rule they apply to it."""
    away, near = job("away", profile="p"), job("near", profile="p", utility_min_thousandths=100)
    slow = (Slowdown(profile="p", beside="p", node_thousandths=10),)
    round_ = instance(1, [away, near], policy=UTILITY, slowdowns=slow, running=[running(away, [where])])
    plan = plan_for(round_, {"near": [("n0", [1])]})
    some = plan_for(round_, {"near": [("n0", [1])]}, asked=["near"])
    ledger = Ledger(round_, UTILITY)
    assert isinstance(violations(round_, plan), list)
    assert isinstance(violations(round_, some), list)
    assert isinstance(ledger.standing(["n0", "gone"], plan), list)
    assert isinstance(ledger.violations(round_, with_assignment(some, "near", node="gone")), list)


def neighbours(policy: Policy = UTILITY, **fields: Any) -> tuple[Instance, Plan]:
    """Two jobs with profiles on one node, the first on GPU 0, the second on GPU 1."""
    jobs = [job("a", profile="p"), job("b", profile="p", utility_min_thousandths=100)]
    slow = (Slowdown(profile="p", beside="p", gpu_thousandths=100, socket_thousandths=50, node_thousandths=10),)
    round_ = instance(1, jobs, policy=policy, slowdowns=slow, **fields)
    return round_, plan_for(round_, {"a": [("n0", [0])], "b": [("n0", [1])]})


@pytest.mark.parametrize("where", [("gone", [0, 1]), ("n0", [0, 9])])
def test_a_plan_is_drawn_whose_running_jobs_stand_on_hardware_that_is_not_listed(where: tuple[str, list[int]]) -> None:
    """Links between GPUs of a node that is gone."""
    away = job("away", gpus=2)
    round_ = instance(1, [away], running=[running(away, [where])])
    plan = plan_for(round_, {})
    assert violations(round_, plan) == []
    view = plan_view(plan, round_)
    ((*_, links, distance),) = view.table("Placed jobs").rows
    assert (links, distance) in (("", None), ("", 0))
    assert view_page(view)


def on_gpus(plan: Plan, *gpus: int) -> Plan:
    """Let the first worker of job ``a`` hold whole GPUs."""
    worker = plan.placements[0].assignments[0].workers[0].model_copy(update={"gpus": gpus})
    return with_assignment(plan, gpus={str(gpu): 1000 for gpu in gpus}, workers=(worker,))


def broken_plans() -> dict[str, tuple[Instance, Plan]]:
    """Plans that a file can hold, and that break rules."""
    round_, plan = neighbours(machines=[machine(gpus=2)])
    first = plan.placements[0]
    rank = (first.assignments[0].workers[0].model_copy(update={"rank": 7}),)
    return {
        "GPU": (round_, on_gpus(plan, 9)),
        "node": (round_, with_assignment(plan, node="nowhere")),
        "job": (round_, plan.model_copy(update={"placements": (first.model_copy(update={"job": "stranger"}),)})),
        "option": (round_, plan.model_copy(update={"placements": (first.model_copy(update={"option": "none"}),)})),
        "rank": (round_, with_assignment(plan, workers=rank)),
        "nothing": (round_, plan.model_copy(update={"placements": (), "unplaced": ()})),
    }


@pytest.mark.parametrize("name", broken_plans())
def test_readers_of_valid_plans_refuse_broken_ones(name: str) -> None:
    """``audit`` says why it cannot judge, the others raise ``BadInput`` or tell the violations."""
    round_, plan = broken_plans()[name]
    (said,) = audit(round_, plan)
    assert said.startswith("cannot be rescored: the plan breaks rules, first of all ")
    for reader in (lambda: explain(round_, plan, "a"), lambda: after_plan(round_, plan)):
        with pytest.raises(BadInput, match="plan: "):
            reader()
    assert not review(round_, plan).valid


@pytest.mark.parametrize("name", broken_plans())
def test_commands_after_a_broken_plan(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """an answer or one message, never an internal fault."""
    round_, plan = broken_plans()[name]
    files = [str(tmp_path / "round.json"), str(tmp_path / "plan.json")]
    write_document(files[0], round_)
    write_document(files[1], plan)
    for codes, command in (
        ({1}, ["check", *files]),
        ({1}, ["audit", *files]),
        ({3}, ["explain", *files, "--job", "a"]),
        ({3}, ["whatif", "fit", files[0], "--job", "1", "--plan", files[1]]),
        ({0, 3}, ["show", files[1], files[0]]),
        ({0, 3}, ["solve", files[0], "--previous", files[1], "--quiet", "--method", "fcfs"]),
    ):
        found = run_command(command)
        said = capfd.readouterr()
        assert found in codes, (command, said.err)
        assert "internal fault" not in said.err
