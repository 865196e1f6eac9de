"""
Solvers: how a `placeopt.linear.LinearModel` is solved, and where.

``load`` returns a solver, ``SOLVERS`` lists what each can do, ``SolveOptions`` and ``Solution`` are what goes in and
out. ``Worker`` runs solves in a process or a thread, ``race`` two solvers at once; ``dual_bound`` turns
duals into a bound that holds exactly, ``FORMATS`` writes a model for other programs. Names are loaded where they are
first asked for, since solvers take long to load.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.solvers.certify import dual_bound as dual_bound
    from placeopt.solvers.certify import trivial_bound as trivial_bound
    from placeopt.solvers.export import FORMATS as FORMATS
    from placeopt.solvers.pool import Worker as Worker
    from placeopt.solvers.racing import Beside as Beside
    from placeopt.solvers.racing import race as race
    from placeopt.solvers.racing import stand_in as stand_in
    from placeopt.solvers.registry import SOLVERS as SOLVERS
    from placeopt.solvers.registry import Capability as Capability
    from placeopt.solvers.registry import Entry as Entry
    from placeopt.solvers.registry import Solve as Solve
    from placeopt.solvers.registry import available as available
    from placeopt.solvers.registry import load as load
    from placeopt.solvers.registry import require as require
    from placeopt.solvers.result import Basis as Basis
    from placeopt.solvers.result import Limit as Limit
    from placeopt.solvers.result import Progress as Progress
    from placeopt.solvers.result import Rounding as Rounding
    from placeopt.solvers.result import Solution as Solution
    from placeopt.solvers.result import SolveOptions as SolveOptions
    from placeopt.solvers.result import Status as Status

__getattr__, __dir__ = lazy_names(__name__)
