"""Rules of policies by name: the built-in ones are complete, and Python code registers others."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from helpers.scenarios import policy, scenario, timed
from placeopt.errors import BadArgument
from placeopt.model import Scheduling
from placeopt.model.scheduling import (
    CHOICE_NAMES,
    ELASTIC_NAMES,
    ORDER_NAMES,
    PREEMPTION_NAMES,
    Elastic,
    JobOrder,
    OptionChoice,
    Preempts,
    RuleNames,
)
from placeopt.simulation import (
    ELASTIC_RULES,
    OPTION_CHOICES,
    PREEMPTION_RULES,
    QUEUE_ORDERS,
    PreemptionRule,
    RuleRegistry,
    missing_estimates,
    simulate,
    sorted_by,
)
from placeopt.simulation.scheduling.preemption_policy import Candidate, Request

REGISTRIES: list[tuple[RuleRegistry[Any], RuleNames, object]] = [
    (QUEUE_ORDERS, ORDER_NAMES, JobOrder),
    (PREEMPTION_RULES, PREEMPTION_NAMES, Preempts),
    (OPTION_CHOICES, CHOICE_NAMES, OptionChoice),
    (ELASTIC_RULES, ELASTIC_NAMES, Elastic),
]


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with the built-in rules, and forget afterwards what a test registers."""
    for registry, names, _ in REGISTRIES:
        monkeypatch.setattr(registry, "_rules", {name: registry[name] for name in names.built_in})
        monkeypatch.setattr(names, "registered", {})


@pytest.mark.parametrize(("registry", "names", "literal"), REGISTRIES, ids=lambda one: getattr(one, "field", ""))
def test_every_built_in_name_has_a_rule(registry: RuleRegistry[Any], names: RuleNames, literal: object) -> None:
    """And every built-in rule a name: the records list the names, the registries hold the rules."""
    assert tuple(registry) == names.built_in == get_args(literal)


def test_a_registered_order_decides_which_job_starts() -> None:
    """Four GPUs are taken; when they come free, the widest job starts first, not the first to arrive."""
    with pytest.raises(ValidationError, match=r"'inference_first' or 'capacity' \["):
        policy(order="widest_first")
    QUEUE_ORDERS.register("widest_first", sorted_by(lambda job: (-job.options[0].demand.gpus, job.arrival_ms)))
    jobs = [timed("held", 0, 1000, gpus=4), timed("first", 1, 1000, gpus=1), timed("wide", 2, 1000, gpus=4)]
    rules = policy("best-fit", order="widest_first")
    assert [job.start_ms for job in simulate(scenario(jobs), rules).jobs] == [0, 2000, 1000]
    assert Scheduling.model_validate_json(rules.model_dump_json()) == rules
    assert missing_estimates(scenario(jobs), rules) is None


def test_a_registered_preemption_rule_decides_which_job_stops() -> None:
    """Users named 'urgent' stop all others, though nothing else distinguishes the jobs."""

    class UrgentUsers(PreemptionRule):
        def stoppable(self, request: Request, candidates: list[Candidate]) -> list[Candidate]:
            return [one for one in candidates if request.job.user == "urgent" != one.job.user]

    PREEMPTION_RULES.register("urgent_users", UrgentUsers)
    jobs = [timed("a", 0, 1000, gpus=4, user="u"), timed("b", 1, 1000, gpus=4, user="urgent")]
    done = simulate(scenario(jobs), policy("best-fit", preempts="urgent_users")).jobs
    assert [(job.start_ms, job.stops) for job in done] == [(0, 1), (1, 0)]


def test_a_name_is_registered_once_and_unknown_ones_are_listed() -> None:
    """A second rule would change what earlier policies mean."""
    with pytest.raises(BadArgument, match="order: there is a rule 'fcfs' already"):
        QUEUE_ORDERS.register("fcfs", QUEUE_ORDERS["srtf"])
    with pytest.raises(
        BadArgument, match=r"order: no rule 'mine' is registered in this process; known: fcfs, priority"
    ):
        QUEUE_ORDERS["mine"]
    QUEUE_ORDERS.register("mine", QUEUE_ORDERS["fcfs"])
    with pytest.raises(ValidationError, match=r"'inference_first', 'capacity' or 'mine' \["):
        policy(order="yours")
