"""Simulation of a scenario under a scheduling policy, event by event; and the rules that policies name."""

from placeopt.simulation.estimates import with_actual_estimates, with_scaled_errors
from placeopt.simulation.gpu_time import GpuUse, Occupancy, fragments_over_time, occupancy, slots_over_time
from placeopt.simulation.history import History, JobHistory, Rounds, longest_queue_ms, round_at
from placeopt.simulation.job_warnings import (
    MissingEstimates,
    NeverEnds,
    check_utilisation,
    missing_estimates,
    never_ending,
    without_utilisation,
)
from placeopt.simulation.play import Tick, simulate
from placeopt.simulation.scheduling.adapt import adapted
from placeopt.simulation.scheduling.elastic import ELASTIC_RULES, ElasticRule
from placeopt.simulation.scheduling.preemption_policy import Candidate, PreemptionRule, Request
from placeopt.simulation.scheduling.preemption_rules import PREEMPTION_RULES
from placeopt.simulation.scheduling.queue_orders import QUEUE_ORDERS, QueueContext, QueueOrder, sorted_by
from placeopt.simulation.scheduling.resource_estimator import OPTION_CHOICES
from placeopt.simulation.scheduling.rule_registry import RuleRegistry, named_policy, policy_names
from placeopt.simulation.scheduling.waiting_queue import JobQueue
from placeopt.simulation.statistics import (
    Distribution,
    Interval,
    bootstrap_interval,
    distribution_of,
    jain_index,
    paired_interval,
    t_interval,
)
from placeopt.simulation.summary import Summary, UserFigures, occupancy_between, summarise

__all__ = [
    "ELASTIC_RULES",
    "OPTION_CHOICES",
    "PREEMPTION_RULES",
    "QUEUE_ORDERS",
    "Candidate",
    "Distribution",
    "ElasticRule",
    "GpuUse",
    "History",
    "Interval",
    "JobHistory",
    "JobQueue",
    "MissingEstimates",
    "NeverEnds",
    "Occupancy",
    "PreemptionRule",
    "QueueContext",
    "QueueOrder",
    "Request",
    "Rounds",
    "RuleRegistry",
    "Summary",
    "Tick",
    "UserFigures",
    "adapted",
    "bootstrap_interval",
    "check_utilisation",
    "distribution_of",
    "fragments_over_time",
    "jain_index",
    "longest_queue_ms",
    "missing_estimates",
    "named_policy",
    "never_ending",
    "occupancy",
    "occupancy_between",
    "paired_interval",
    "policy_names",
    "round_at",
    "simulate",
    "slots_over_time",
    "sorted_by",
    "summarise",
    "t_interval",
    "with_actual_estimates",
    "with_scaled_errors",
    "without_utilisation",
]
