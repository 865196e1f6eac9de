"""Which solvers there are, and what each can do. Asking imports none of them."""

import importlib
import importlib.util
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

from placeopt.errors import Unsupported

if TYPE_CHECKING:
    import threading

    from placeopt.linear import LinearModel
    from placeopt.solvers.reading import OnProgress, Reading
    from placeopt.solvers.result import Solution, SolveOptions


@dataclass(frozen=True)
class Capability:
    """What a solver can do."""

    relax: bool = False  # solves linear relaxations, with duals
    hint: bool = True  # starts from a hint
    progress: bool = True  # reports solutions and bounds while it runs
    deterministic: bool = True  # can be cut by work instead of time
    max_coefficient: float = math.inf  # largest absolute coefficient it takes


@dataclass(frozen=True)
class Entry:
    """A solver."""

    module: str  # of its wrapper
    package: str  # which it needs, by the name that is imported
    capability: Capability  # what it can do
    settings: str = ""  # options set beyond limits, threads, seed and gap, as text
    name: str | None = None
    """Name of the solver in a wrapper of several: there ``solver(name)`` returns the ``solve``."""
    apart: bool = False
    """
    Whether it always solves in a process of its own: it starts a program, or does not let go of Python's lock. What its
    ``solve`` starts ends with that process.
    """


class Solve(Protocol):
    """What `load` returns."""

    def __call__(
        self,
        model: "LinearModel",
        options: "SolveOptions",
        on_progress: "OnProgress | None" = None,
        stop: "threading.Event | None" = None,
    ) -> "Solution":
        """
        Solve ``model``.

        ``on_progress`` is called, maybe from a thread of the solver, with every better verified solution and bound.
        When ``stop`` is set, the solve ends as soon as the solver looks, with what it has. Raises ``Unsupported`` if it
        cannot do what ``options`` ask, ``BadInput`` for an unknown option in ``extra`` or a hint of the wrong size.
        """
        ...


class Wrapper(Protocol):
    """The ``solve`` of a module of `Entry`."""

    def __call__(self, reading: "Reading", stop: "threading.Event") -> "Solution":
        """Solve the model of ``reading`` as its options say; whatever the solver returns goes into it."""
        ...


def _through_pulp(
    name: str, package: str, *, hint: bool = True, deterministic: bool = False, settings: str = ""
) -> Entry:
    capability = Capability(hint=hint, progress=False, deterministic=deterministic, max_coefficient=DISTINCT)
    return Entry("placeopt.solvers.pulp_packages", package, capability, f"gapRel 1e-15{settings}", name, apart=True)


DISTINCT = 1 << 30
"""Numbers up to which solvers of floats tell a unit from none: SCIP calls 2e12 + 1 optimal where 2e12 + 3 is."""
HIGHS = (
    "mip_feasibility_tolerance 1e-9 to 1e-6, by the heaviest row; integers: mip_abs_gap 0.999999; models with "
    "continuous variables too: presolve off"
)
CBC = "; preprocess off; integerTolerance 1e-9 to 1e-6, by the heaviest row"

SOLVERS = MappingProxyType(
    {
        "cpsat": Entry("placeopt.solvers.cpsat", "ortools", Capability()),
        "highs": Entry("placeopt.solvers.highs", "highspy", Capability(relax=True, max_coefficient=10**15), HIGHS),
        "pulp-cbc": _through_pulp("cbc", "pulp", deterministic=True, settings=CBC),
        "pulp-scip": _through_pulp("scip", "pyscipopt"),
        "pulp-gurobi": _through_pulp("gurobi", "gurobipy"),
        "pulp-cplex": _through_pulp("cplex", "cplex"),
        "pulp-xpress": _through_pulp("xpress", "xpress"),
        "pulp-copt": _through_pulp("copt", "coptpy"),
        "pulp-cuopt": _through_pulp("cuopt", "cuopt", hint=False),
    }
)
"""All solvers by name, installed or not; where several can do it, the first is the first choice."""

_FLAGS = tuple(field.name for field in fields(Capability) if field.name != "max_coefficient")


def available() -> tuple[str, ...]:
    """Names of the solvers whose package is installed."""
    return tuple(name for name in SOLVERS if _installed(name))


def require(name: str, needs: Iterable[str] = (), *, coefficient: int = 0) -> Entry:
    """
    The entry of a solver that has the flags ``needs`` of `Capability` and takes coefficients up to ``coefficient``.

    Raises ``Unsupported`` if the solver does not exist, is not installed or cannot; names those that are and can.
    """
    wanted = tuple(needs)
    for need in wanted:
        if need not in _FLAGS:
            raise ValueError(f"unknown need {need!r}: expected one of {', '.join(_FLAGS)}")
    if name not in SOLVERS:
        raise Unsupported(f"unknown solver {name!r}: there are {', '.join(SOLVERS)}")
    entry = SOLVERS[name]
    able = _can(entry.capability, wanted, coefficient)
    if able and _installed(name):
        return entry
    others = [other for other in available() if _can(SOLVERS[other].capability, wanted, coefficient)]
    advice = f"use {' or '.join(others)}" if others else "none can" if not able else "none that can is installed"
    if able:
        raise Unsupported(f"solver {name!r} needs the package {entry.package!r}, which is not installed; {advice}")
    what = ", ".join([*wanted, *([f"coefficients of {coefficient}"] if coefficient else [])])
    raise Unsupported(f"solver {name!r} cannot do all of: {what}; {advice}")


def check_request(name: str, model: "LinearModel", options: "SolveOptions") -> None:
    """Refuse what the solver cannot do, before the model goes anywhere; raises `Unsupported`."""
    needs = [
        *(["relax"] if options.relax else []),
        *(["hint"] if options.hint is not None else []),
        *(["deterministic"] if options.deterministic or options.work_limit is not None else []),
    ]
    require(name, needs, coefficient=int(abs(model.coefficients).max(initial=0)))


def load(name: str) -> Solve:
    """Return what solves by this solver; imports its package, which takes a tenth of a second."""
    import threading

    entry = require(name)
    module = importlib.import_module(entry.module)
    wrapper = cast(Wrapper, module.solve if entry.name is None else module.solver(entry.name))
    from placeopt.solvers.reading import Reading  # only here: it loads NumPy, see `placeopt.solvers.pool`

    def checked(
        model: "LinearModel",
        options: "SolveOptions",
        on_progress: "OnProgress | None" = None,
        stop: "threading.Event | None" = None,
    ) -> "Solution":
        check_request(name, model, options)
        reading = Reading(model, options, on_progress)
        return reading.settled() or wrapper(reading, stop or threading.Event())

    return checked


def check_extra(name: str, extra: Sequence[tuple[str, str]]) -> None:
    """
    Refuse options that a solver does not have, where that can be checked without a model.

    Imports the solver's package if there are any. The solvers behind PuLP cannot be asked: there the solve fails.

    Raises ``BadArgument``, which names the option, or ``Unsupported`` if the solver does not exist or is not installed.
    """
    check = getattr(importlib.import_module(require(name).module), "check_extra", None) if extra else None
    if check is not None:
        check(extra)


def _installed(name: str) -> bool:
    return importlib.util.find_spec(SOLVERS[name].package) is not None


def _can(capability: Capability, needs: tuple[str, ...], coefficient: int) -> bool:
    return coefficient <= capability.max_coefficient and all(getattr(capability, need) for need in needs)
