"""Rules of policies by name: the built-in ones are complete, and Python code registers others."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from helpers.scenarios import policy, scenario, timed
from placeopt.errors import BadArgument
from placeopt.scheduling import (
    ELASTIC_RULES,
    OPTION_CHOICES,
    PREEMPTION_RULES,
    QUEUE_ORDERS,
    Candidate,
    PreemptionRule,
    Request,
    RuleRegistry,
    Scheduling,
    sorted_by,
)
from placeopt.simulation import missing_estimates, simulate

REGISTRIES = {"order": QUEUE_ORDERS, "preempts": PREEMPTION_RULES, "choice": OPTION_CHOICES, "elastic": ELASTIC_RULES}


@pytest.mark.parametrize(("field", "registry"), REGISTRIES.items())
def test_every_name_has_a_rule(field: str, registry: RuleRegistry[Any]) -> None:
    """A name that is none is refused with those that there are; the JSON Schema lists them, too."""
    with pytest.raises(ValidationError) as refused:
        policy(**{field: "none"})
    names = re.findall(r"'(\w+)'", refused.value.errors()[0]["msg"])
    assert names == ["none", *registry]
    stated = json.dumps(Scheduling.model_json_schema()["properties"][field])
    assert all(f'"{name}"' in stated for name in registry)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("fcfs", "a record with its name"),
        ({}, "a record with its name"),
        ({"rule": 3}, "a record with its name"),
        ({"rule": "clusters", "clusters": 3}, r"order\.batch\n +Field required"),
        ({"rule": "clusters", "clusters": 0, "batch": 1}, r"order\.clusters\n +Input should be greater"),
        ({"rule": "fcfs", "batch": 1}, r"order\.batch\n +Extra inputs"),
    ],
)
def test_parameters_stand_beside_the_name_of_their_rule(rule: Any, expected: str) -> None:
    """What a rule does not have is refused where it stands."""
    with pytest.raises(ValidationError, match=expected):
        Scheduling(name="mine", rounds="each", order=rule)


def test_a_registered_order_decides_which_job_starts() -> None:
    """Four GPUs are taken; when they come free, the widest job starts first, not the first to arrive."""
    with pytest.raises(ValidationError, match=r"'most_gpus_first'; expected 'fcfs', .*'capacity'"):
        policy(order="most_gpus_first")
    most_gpus_first = sorted_by(lambda job: (-job.options[0].demand.gpus, job.arrival_ms))
    QUEUE_ORDERS.register("most_gpus_first", most_gpus_first)
    jobs = [timed("held", 0, 1000, gpus=4), timed("first", 1, 1000, gpus=1), timed("wide", 2, 1000, gpus=4)]
    rules = policy("best-fit", order="most_gpus_first")
    assert [job.start_ms for job in simulate(scenario(jobs), rules).jobs] == [0, 2000, 1000]
    assert Scheduling.model_validate_json(rules.model_dump_json()) == rules
    assert missing_estimates(scenario(jobs), rules) is None
    with pytest.raises(ValidationError, match=r"'capacity'.*, 'most_gpus_first' \["):
        policy(order="yours")
    with pytest.raises(BadArgument, match="order: there is a rule 'most_gpus_first' already"):
        QUEUE_ORDERS.register("most_gpus_first", most_gpus_first)


def test_a_registered_preemption_rule_decides_which_job_stops() -> None:
    """Users named 'urgent' stop all others, though nothing else distinguishes the jobs."""

    def others(request: Request, candidates: list[Candidate]) -> list[Candidate]:
        return [one for one in candidates if request.job.user == "urgent" != one.job.user]

    PREEMPTION_RULES.register("urgent_users", PreemptionRule(others))
    jobs = [timed("a", 0, 1000, gpus=4, user="u"), timed("b", 1, 1000, gpus=4, user="urgent")]
    done = simulate(scenario(jobs), policy("best-fit", preempts="urgent_users")).jobs
    assert [(job.start_ms, job.stops) for job in done] == [(0, 1), (1, 0)]


def test_no_rule_takes_the_name_of_one_that_was_not_loaded_yet() -> None:
    """In a process that has read no policy so far."""
    program = (
        "from placeopt import BadInput\nfrom placeopt.scheduling import QUEUE_ORDERS\n"
        "try:\n    QUEUE_ORDERS.register('fcfs', None)\n"
        "except BadInput as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "there is a rule 'fcfs' already" in done.stdout


def test_names_without_a_rule_are_listed() -> None:
    """A second rule would change what earlier policies mean."""
    with pytest.raises(BadArgument, match="order: there is a rule 'fcfs' already"):
        QUEUE_ORDERS.register("fcfs", QUEUE_ORDERS["srtf"])
    with pytest.raises(
        BadArgument, match=r"order: no rule 'mine' is registered in this process; known: fcfs, priority"
    ):
        QUEUE_ORDERS["mine"]
