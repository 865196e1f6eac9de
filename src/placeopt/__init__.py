"""
placeopt: optimal placement of jobs on GPU clusters, with a proven gap on every round.

``solve(instance)`` answers a scheduling round; ``Engine`` does so repeatedly with a warm solver process.
Importing this package loads the standard library only; what is asked for is loaded then.
"""

TYPE_CHECKING = False  # type checkers take it for typing's; that module takes ten times as long as this one

if TYPE_CHECKING:  # the public names, each loaded where it is first asked for
    from placeopt.actions import plan_actions as plan_actions
    from placeopt.documents.columns import cluster_from_columns as cluster_from_columns
    from placeopt.documents.columns import instance_from_columns as instance_from_columns
    from placeopt.documents.documents import read_instance as read_instance
    from placeopt.documents.documents import read_plan as read_plan
    from placeopt.documents.documents import write_document as write_document
    from placeopt.errors import BadInput as BadInput
    from placeopt.errors import EngineInUse as EngineInUse
    from placeopt.errors import InternalFault as InternalFault
    from placeopt.errors import PlaceoptError as PlaceoptError
    from placeopt.errors import SolverFault as SolverFault
    from placeopt.errors import StaleSnapshot as StaleSnapshot
    from placeopt.errors import Unsupported as Unsupported
    from placeopt.generators import generate as generate
    from placeopt.live_cluster.engine import Engine as Engine
    from placeopt.model import Instance as Instance
    from placeopt.model import Plan as Plan
    from placeopt.model import Policy as Policy
    from placeopt.partition import solve_in_parts as solve_in_parts
    from placeopt.referee import violations as violations
    from placeopt.simulation.records.scenario import read_scenario as read_scenario
    from placeopt.solving.api import Interrupted as Interrupted
    from placeopt.solving.api import solve as solve
    from placeopt.solving.audit import audit as audit
    from placeopt.solving.bounds import Progress as Progress
    from placeopt.solving.held_room import hold_room as hold_room

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    from placeopt.lazy import load

    return load(__name__, name)


def __dir__() -> list[str]:
    from placeopt.lazy import public_names

    return public_names(__name__)
