"""Which solvers there are, and what each can do. Asking imports none of them."""

import importlib
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

from placeopt.errors import Unsupported

if TYPE_CHECKING:
    import threading

    from placeopt.linear import LinearModel
    from placeopt.solvers.reading import OnProgress
    from placeopt.solvers.result import Solution, SolveOptions


@dataclass(frozen=True)
class Capability:
    """
    What a solver can do.

    Attributes
    ----------
    integer
        Solves integer models.
    relax
        Solves linear relaxations, with duals.
    hint
        Starts from a hint.
    progress
        Reports solutions and bounds while it runs.
    deterministic
        Can be cut by work instead of time.
    max_coefficient
        Largest absolute coefficient it takes.
    """

    integer: bool = True
    relax: bool = False
    hint: bool = True
    progress: bool = True
    deterministic: bool = True
    max_coefficient: int = 2**53


@dataclass(frozen=True)
class Entry:
    """A solver: the module of its wrapper, the package it needs, its capability."""

    module: str
    package: str
    capability: Capability


class Solve(Protocol):
    """What every wrapper's ``solve`` looks like."""

    def __call__(
        self,
        model: "LinearModel",
        options: "SolveOptions",
        on_progress: "OnProgress | None" = None,
        stop: "threading.Event | None" = None,
    ) -> "Solution":
        """Solve; see the wrappers."""
        ...


SOLVERS = MappingProxyType(
    {
        "cpsat": Entry("placeopt.solvers.cpsat", "ortools", Capability()),
        "highs": Entry("placeopt.solvers.highs", "highspy", Capability(relax=True, max_coefficient=10**15)),
    }
)
"""All solvers by name; where several can do it, the first is the first choice."""

_FLAGS = tuple(field.name for field in fields(Capability) if field.name != "max_coefficient")


def available() -> tuple[str, ...]:
    """Names of the solvers whose package is installed."""
    return tuple(name for name, entry in SOLVERS.items() if importlib.util.find_spec(entry.package) is not None)


def require(name: str, needs: Iterable[str] = (), *, coefficient: int = 0) -> Entry:
    """
    The entry of a solver, if it can do what is needed.

    Parameters
    ----------
    name
        Name of the solver.
    needs
        Names of `Capability` flags, such as ``"relax"``.
    coefficient
        Largest absolute coefficient of the model.

    Raises
    ------
    Unsupported
        If the solver does not exist or cannot; names those that can.
    """
    wanted = tuple(needs)
    for need in wanted:
        if need not in _FLAGS:
            raise ValueError(f"unknown need {need!r}: expected one of {', '.join(_FLAGS)}")
    if name not in SOLVERS:
        raise Unsupported(f"unknown solver {name!r}: there are {', '.join(SOLVERS)}")
    able = [other for other in SOLVERS if _can(SOLVERS[other].capability, wanted, coefficient)]
    if name not in able:
        what = ", ".join([*wanted, *([f"coefficients of {coefficient}"] if coefficient else [])])
        raise Unsupported(
            f"solver {name!r} cannot do all of: {what}; " + (f"use {' or '.join(able)}" if able else "none can")
        )
    return SOLVERS[name]


def load(name: str) -> Solve:
    """The ``solve`` function of a solver; imports its package, which takes a tenth of a second."""
    return cast(Solve, importlib.import_module(require(name).module).solve)


def _can(capability: Capability, needs: tuple[str, ...], coefficient: int) -> bool:
    return coefficient <= capability.max_coefficient and all(getattr(capability, need) for need in needs)
