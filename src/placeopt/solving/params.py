"""The options of a solve: one frozen record for library, engine, command line, benchmark and log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Self, TypedDict

from placeopt.arguments import MAX_SEED, MAX_TIME_LIMIT_S, expect
from placeopt.errors import BadInput


class SolveOptions(TypedDict, total=False):
    """The fields of `SolveParams`, as keywords of ``solve`` and ``Engine``."""

    method: str
    time_limit_s: float
    gap: float
    threads: int | None
    seed: int
    deterministic: bool
    memory_limit_mib: int | None
    solver_options: Mapping[str, str]


@dataclass(frozen=True)
class SolveParams:
    """
    How to solve a round.

    Attributes
    ----------
    method
        A name in ``placeopt.solving.methods.METHODS``.
    time_limit_s
        Wall-clock seconds for the whole call, compile and check included.
    gap
        Relative gap of the first level not proven at which to stop; 0 for a proof.
    threads
        Threads of a solver, at most the usable cores; None for all of these.
    seed
        Of solvers and tie-breaks.
    deterministic
        One thread, stages stop on work instead of time, timings null.
    memory_limit_mib
        MiB that a solver process may use; None for no limit.
    solver_options
        Options of the exact solver by its own names. With any, there is no race of two solvers.
    """

    method: str = "auto"
    time_limit_s: float = 3.0
    gap: float = 0.0
    threads: int | None = None
    seed: int = 0
    deterministic: bool = False
    memory_limit_mib: int | None = None
    solver_options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """
        Return the record of some keywords, checked; None is the default of a method and of solver options.

        Raises
        ------
        BadInput
            If one is unknown, of the wrong kind or out of range.
        """
        names = [option.name for option in fields(cls)]
        if unknown := [name for name in options if name not in names]:
            raise BadInput(f"{unknown[0]}: no such option; expected {', '.join(names)}")
        by_default = ("method", "solver_options")
        params = cls(**{name: value for name, value in options.items() if value is not None or name not in by_default})
        params.check()
        return params

    def keywords(self) -> dict[str, Any]:
        """Return the options as keyword arguments of ``solve`` and ``Engine.solve``."""
        return {**vars(self), "solver_options": dict(self.solver_options)}

    def check(self) -> None:
        """
        Refuse values of the wrong kind or out of range; ``method`` is checked where it is used.

        Raises ``BadInput``, which names the option, the value and what is expected.
        """
        expect("time_limit_s", self.time_limit_s, Real, "a number of seconds")
        expect("gap", self.gap, Real, "a number")
        expect("threads", 1 if self.threads is None else self.threads, Integral, "a whole number, or None")
        expect("seed", self.seed, Integral, "a whole number")
        expect("memory_limit_mib", self.memory_limit_mib or 1, Integral, "a whole number of MiB, or None")
        expect("solver_options", self.solver_options, Mapping, "a dictionary of the solver's own options")
        if not 0 < self.time_limit_s <= MAX_TIME_LIMIT_S:
            raise BadInput(f"time_limit_s: {self.time_limit_s}, expected seconds above 0 and up to {MAX_TIME_LIMIT_S}")
        if not 0 <= self.gap < 1:
            raise BadInput(f"gap: {self.gap}, expected a fraction from 0 up to 1, such as 0.01 for one percent")
        if self.threads is not None and self.threads < 1:
            raise BadInput(f"threads: {self.threads}, expected 1 or more")
        if not 0 <= self.seed <= MAX_SEED:
            raise BadInput(f"seed: {self.seed}, expected 0 to {MAX_SEED}")


def check_call(*, previous: object = None, cancel: object = None, on_progress: object = None) -> None:
    """
    Refuse arguments of a call, beside its `SolveParams`, that are of the wrong kind.

    Raises ``BadInput``, which names the argument and what is expected.
    """
    if previous is not None:
        from placeopt.model import Plan  # only here: the command line reads options before it needs any record

        expect("previous", previous, Plan, "a Plan of an earlier round, or None")
    if cancel is not None and not hasattr(cancel, "is_set"):
        raise BadInput(f"cancel: {type(cancel).__name__}, expected a threading.Event, or None")
    if on_progress is not None and not callable(on_progress):
        raise BadInput(f"on_progress: {type(on_progress).__name__}, expected a function of one argument, or None")
