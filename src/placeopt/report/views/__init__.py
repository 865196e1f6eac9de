"""Documents as answers: what a round, a plan, a machine, a cluster, a scenario or a simulation is, each as a view."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.report.views.contents import cluster_view as cluster_view
    from placeopt.report.views.contents import instance_line as instance_line
    from placeopt.report.views.contents import instance_view as instance_view
    from placeopt.report.views.documents import RECORDS as RECORDS
    from placeopt.report.views.documents import Source as Source
    from placeopt.report.views.documents import views_of as views_of
    from placeopt.report.views.hardware import hardware_lines as hardware_lines
    from placeopt.report.views.hardware import machine_view as machine_view
    from placeopt.report.views.held_gpus import gpu_map as gpu_map
    from placeopt.report.views.held_gpus import gpu_table as gpu_table
    from placeopt.report.views.held_gpus import node_uses as node_uses
    from placeopt.report.views.plan import plan_view as plan_view
    from placeopt.report.views.scenario import scenario_view as scenario_view
    from placeopt.report.views.simulation import simulation_view as simulation_view
    from placeopt.report.views.simulation_curves import MOST_POINTS as MOST_POINTS
    from placeopt.report.views.simulation_curves import grouped as grouped
    from placeopt.report.views.simulation_curves import log_views as log_views
    from placeopt.report.views.simulation_log import SimulationLog as SimulationLog
    from placeopt.report.views.simulation_log import read_log as read_log

__getattr__, __dir__ = lazy_names(__name__)
