"""Scheduling policies: queues, preemption, resizing and estimates, and what they decide on a live cluster."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.scheduling.adapt import adapted as adapted
    from placeopt.scheduling.attained_service import Levels as Levels
    from placeopt.scheduling.attained_service import StoppingLevels as StoppingLevels
    from placeopt.scheduling.core_curve import CoreCurve as CoreCurve
    from placeopt.scheduling.elastic import ElasticRule as ElasticRule
    from placeopt.scheduling.host_rules import Replicas as Replicas
    from placeopt.scheduling.host_rules import Throttle as Throttle
    from placeopt.scheduling.live import LiveScheduler as LiveScheduler
    from placeopt.scheduling.live import refuse_unread as refuse_unread
    from placeopt.scheduling.live import scheduling_in as scheduling_in
    from placeopt.scheduling.live import setting_of as setting_of
    from placeopt.scheduling.named_policies import named_policy as named_policy
    from placeopt.scheduling.named_policies import policy_names as policy_names
    from placeopt.scheduling.one_round import plan_round as plan_round
    from placeopt.scheduling.policy import Scheduling as Scheduling
    from placeopt.scheduling.predictions import Prediction as Prediction
    from placeopt.scheduling.predictions import predictors as predictors
    from placeopt.scheduling.preemption_policy import Candidate as Candidate
    from placeopt.scheduling.preemption_policy import PreemptionRule as PreemptionRule
    from placeopt.scheduling.preemption_policy import Request as Request
    from placeopt.scheduling.prometheus import Prometheus as Prometheus
    from placeopt.scheduling.queue_orders import QueueContext as QueueContext
    from placeopt.scheduling.queue_orders import QueueOrder as QueueOrder
    from placeopt.scheduling.queue_orders import sorted_by as sorted_by
    from placeopt.scheduling.rules import DIVISIONS as DIVISIONS
    from placeopt.scheduling.rules import ELASTIC_RULES as ELASTIC_RULES
    from placeopt.scheduling.rules import OPTION_CHOICES as OPTION_CHOICES
    from placeopt.scheduling.rules import PREEMPTION_RULES as PREEMPTION_RULES
    from placeopt.scheduling.rules import QUEUE_ORDERS as QUEUE_ORDERS
    from placeopt.scheduling.rules import Rule as Rule
    from placeopt.scheduling.rules import RuleRegistry as RuleRegistry
    from placeopt.scheduling.setting import ArrivingJob as ArrivingJob
    from placeopt.scheduling.setting import Setting as Setting
    from placeopt.scheduling.setting import SubmittedJob as SubmittedJob
    from placeopt.scheduling.systems import Predictor as Predictor
    from placeopt.scheduling.systems import ScenarioMaker as ScenarioMaker
    from placeopt.scheduling.systems import System as System
    from placeopt.scheduling.systems import load_systems as load_systems
    from placeopt.scheduling.systems import system_scenario as system_scenario
    from placeopt.scheduling.systems import system_scenarios as system_scenarios
    from placeopt.scheduling.telemetry import Telemetry as Telemetry
    from placeopt.scheduling.telemetry import TelemetryFile as TelemetryFile
    from placeopt.scheduling.telemetry import Usage as Usage
    from placeopt.scheduling.urgency_queue import Goals as Goals
    from placeopt.scheduling.waiting_queue import JobQueue as JobQueue

__getattr__, __dir__ = lazy_names(__name__)
