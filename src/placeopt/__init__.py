"""
placeopt: optimal placement of jobs on GPU clusters, with a proven gap on every round.

``solve(instance)`` answers a scheduling round; ``Engine`` does so repeatedly with a warm solver process.
Importing this package loads the standard library only; what is asked for is loaded then.
"""

TYPE_CHECKING = False  # type checkers take it for typing's; that module takes ten times as long as this one

if TYPE_CHECKING:
    from placeopt.actions import plan_actions
    from placeopt.errors import (
        BadInput,
        EngineInUse,
        InternalFault,
        PlaceoptError,
        SolverFault,
        StaleSnapshot,
        Unsupported,
    )
    from placeopt.formats.columns import cluster_from_columns, instance_from_columns
    from placeopt.formats.documents import (
        read_instance,
        read_plan,
        read_scenario,
        write_instance,
        write_plan,
        write_scenario,
    )
    from placeopt.generators import generate
    from placeopt.live_cluster.engine import Engine
    from placeopt.model import Instance, Plan, Policy
    from placeopt.partition import solve_in_parts
    from placeopt.referee import violations
    from placeopt.solving.api import Interrupted, solve
    from placeopt.solving.audit import audit
    from placeopt.solving.bounds import Progress

__version__ = "0.1.0"

_HOME = {
    "BadInput": "placeopt.errors",
    "Engine": "placeopt.live_cluster.engine",
    "EngineInUse": "placeopt.errors",
    "Instance": "placeopt.model",
    "InternalFault": "placeopt.errors",
    "Interrupted": "placeopt.solving.api",
    "PlaceoptError": "placeopt.errors",
    "Plan": "placeopt.model",
    "Policy": "placeopt.model",
    "Progress": "placeopt.solving.bounds",
    "SolverFault": "placeopt.errors",
    "StaleSnapshot": "placeopt.errors",
    "Unsupported": "placeopt.errors",
    "audit": "placeopt.solving.audit",
    "cluster_from_columns": "placeopt.formats.columns",
    "generate": "placeopt.generators",
    "instance_from_columns": "placeopt.formats.columns",
    "plan_actions": "placeopt.actions",
    "read_instance": "placeopt.formats.documents",
    "read_plan": "placeopt.formats.documents",
    "read_scenario": "placeopt.formats.documents",
    "solve": "placeopt.solving.api",
    "solve_in_parts": "placeopt.partition",
    "violations": "placeopt.referee",
    "write_instance": "placeopt.formats.documents",
    "write_plan": "placeopt.formats.documents",
    "write_scenario": "placeopt.formats.documents",
}

__all__ = [
    "BadInput",
    "Engine",
    "EngineInUse",
    "Instance",
    "InternalFault",
    "Interrupted",
    "PlaceoptError",
    "Plan",
    "Policy",
    "Progress",
    "SolverFault",
    "StaleSnapshot",
    "Unsupported",
    "__version__",
    "audit",
    "cluster_from_columns",
    "generate",
    "instance_from_columns",
    "plan_actions",
    "read_instance",
    "read_plan",
    "read_scenario",
    "solve",
    "solve_in_parts",
    "violations",
    "write_instance",
    "write_plan",
    "write_scenario",
]


def __getattr__(name: str) -> object:
    """Load a public name where it is first asked for (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'placeopt' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
