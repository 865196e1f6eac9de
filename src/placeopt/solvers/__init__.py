"""
Solvers: how a `placeopt.linear.LinearModel` is solved, and where.

``load`` returns a solver, ``SOLVERS`` lists what each can do, ``SolveOptions`` and ``Solution`` are what goes in and
out. ``Worker`` runs solves in a process, ``InProcess`` in a thread, ``race`` two solvers at once; ``dual_bound`` turns
duals into a bound that holds exactly, ``FORMATS`` writes a model for other programs. Names are loaded where they are
first asked for, since solvers take long to load.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.solvers.certify import dual_bound, trivial_bound
    from placeopt.solvers.export import FORMATS
    from placeopt.solvers.pool import InProcess, Worker
    from placeopt.solvers.racing import Beside, Contestant, race, share_out, stand_in
    from placeopt.solvers.registry import SOLVERS, Capability, Entry, Solve, available, load, require
    from placeopt.solvers.result import Basis, Limit, Progress, Rounding, Solution, SolveOptions, Status
    from placeopt.solvers.supervise import Runner

__all__ = [
    "FORMATS",
    "SOLVERS",
    "Basis",
    "Beside",
    "Capability",
    "Contestant",
    "Entry",
    "InProcess",
    "Limit",
    "Progress",
    "Rounding",
    "Runner",
    "Solution",
    "Solve",
    "SolveOptions",
    "Status",
    "Worker",
    "available",
    "dual_bound",
    "load",
    "race",
    "require",
    "share_out",
    "stand_in",
    "trivial_bound",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "certify": ("dual_bound", "trivial_bound"),
        "export": ("FORMATS",),
        "pool": ("InProcess", "Worker"),
        "racing": ("Beside", "Contestant", "race", "share_out", "stand_in"),
        "registry": ("SOLVERS", "Capability", "Entry", "Solve", "available", "load", "require"),
        "result": ("Basis", "Limit", "Progress", "Rounding", "Solution", "SolveOptions", "Status"),
        "supervise": ("Runner",),
    },
)
