"""Simulation of a scenario under a scheduling policy, event by event."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.scheduling.estimate import Estimate as Estimate
    from placeopt.simulation.assumed_interference import assumed_kind as assumed_kind
    from placeopt.simulation.assumed_interference import assumed_slowdowns as assumed_slowdowns
    from placeopt.simulation.estimates import with_actual_estimates as with_actual_estimates
    from placeopt.simulation.estimates import with_drawn_errors as with_drawn_errors
    from placeopt.simulation.estimates import with_scaled_errors as with_scaled_errors
    from placeopt.simulation.gpu_time import GpuUse as GpuUse
    from placeopt.simulation.gpu_time import Occupancy as Occupancy
    from placeopt.simulation.gpu_time import fragments_over_time as fragments_over_time
    from placeopt.simulation.gpu_time import occupancy as occupancy
    from placeopt.simulation.gpu_time import slots_over_time as slots_over_time
    from placeopt.simulation.history import History as History
    from placeopt.simulation.history import JobHistory as JobHistory
    from placeopt.simulation.history import Rounds as Rounds
    from placeopt.simulation.history import longest_queue_ms as longest_queue_ms
    from placeopt.simulation.history import round_at as round_at
    from placeopt.simulation.job_columns import JobColumns as JobColumns
    from placeopt.simulation.job_warnings import MissingEstimates as MissingEstimates
    from placeopt.simulation.job_warnings import NeverEnds as NeverEnds
    from placeopt.simulation.job_warnings import check_utilisation as check_utilisation
    from placeopt.simulation.job_warnings import missing_estimates as missing_estimates
    from placeopt.simulation.job_warnings import never_ending as never_ending
    from placeopt.simulation.job_warnings import without_utilisation as without_utilisation
    from placeopt.simulation.play import Tick as Tick
    from placeopt.simulation.play import simulate as simulate
    from placeopt.simulation.records.endpoint import Autoscaler as Autoscaler
    from placeopt.simulation.records.endpoint import Endpoint as Endpoint
    from placeopt.simulation.records.endpoint import LoadStep as LoadStep
    from placeopt.simulation.records.endpoint import Replica as Replica
    from placeopt.simulation.records.scenario import Arrival as Arrival
    from placeopt.simulation.records.scenario import Physics as Physics
    from placeopt.simulation.records.scenario import Scenario as Scenario
    from placeopt.simulation.records.scenario import read_scenario as read_scenario
    from placeopt.simulation.statistics import Distribution as Distribution
    from placeopt.simulation.statistics import Interval as Interval
    from placeopt.simulation.statistics import bootstrap_interval as bootstrap_interval
    from placeopt.simulation.statistics import distribution_of as distribution_of
    from placeopt.simulation.statistics import jain_index as jain_index
    from placeopt.simulation.statistics import paired_interval as paired_interval
    from placeopt.simulation.statistics import t_interval as t_interval
    from placeopt.simulation.summary import Summary as Summary
    from placeopt.simulation.summary import UserFigures as UserFigures
    from placeopt.simulation.summary import occupancy_between as occupancy_between
    from placeopt.simulation.summary import summarise as summarise

__getattr__, __dir__ = lazy_names(__name__)
