"""
What goes into a solve and what comes out: options, progress, solution.

Why a solve stopped is two fields, as in MathOpt: `Status` says what is known, `Limit` says what cut it short.
Unknown is ``None``, never 0 or infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from placeopt.linear import IntArray

Status = Literal["optimal", "feasible", "no_solution", "infeasible", "error"]
"""
``optimal``: proven (without relaxation: ``objective == bound``). ``feasible``: values, no proof.
``no_solution``: stopped empty-handed. ``infeasible``: the solver claims that there is none; solvers have been wrong,
so this never overrides a solution held from elsewhere. ``error``: see the message.
"""

Limit = Literal["none", "time", "work", "size", "memory", "user"]
"""What ended the solve: nothing, wall clock, deterministic work, size of the model, memory, the caller."""


@dataclass(frozen=True, eq=False)
class Basis:
    """A basis of the simplex method, by the solver's own numbers: shapes ``(n,)`` and ``(m,)``."""

    columns: NDArray[np.int8]
    rows: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Rounding:
    """How a relaxation is rounded, see `placeopt.solvers.relaxation`."""

    objective: IntArray  # (n,) of the relaxation that is rounded
    groups: tuple[IntArray, ...]  # columns that become integers, one group after the other


@dataclass(frozen=True)
class SolveOptions:
    """How to solve."""

    time_limit_s: float  # wall-clock seconds for the solver itself
    threads: int = 1  # threads of the solver. More than the machine has is a waste, not an error
    seed: int = 0  # random seed of the solver
    gap: float = 0.0
    """Relative gap at which to stop, 0 for a proof. A solve that stops at a positive gap is ``feasible``."""
    deterministic: bool = False
    """
    One thread, and ``work_limit`` instead of the clock: the same model gives the same solution. If the clock cuts in
    all the same, the limit is ``time`` and nothing is promised.
    """
    work_limit: float | None = None
    """Work in units of roughly a second, counted the solver's own way (see each solver); ``None`` for no limit."""
    relax: bool = False
    """Solve the linear relaxation: the answer has relaxed values, duals and a certified bound, but no values."""
    hint: IntArray | None = None
    """Shape ``(n,)``: a solution to start from, feasible or not. A feasible one is never lost."""
    memory_limit_mib: int | None = None
    """MiB the solve may allocate in its process; ignored without a process of its own. ``None`` for no limit."""
    start: Basis | None = None
    """
    With ``relax``: where the simplex method begins, as an earlier solve left it. Columns added since then begin at
    their lower bound; the rows are the same. HiGHS only; others leave it aside.
    """
    keep_basis: bool = False  # with ``relax``: whether the answer holds a basis to go on from
    rounding: Rounding | None = None  # with ``relax``: the relaxation is also rounded, by HiGHS only
    extra: tuple[tuple[str, str], ...] = ()
    """Options of the solver by their own names, as texts; they come last and win."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The outcome of a solve; everything in it was checked against the model."""

    status: Status
    limit: Limit = "none"
    """``status``, ``limit``: See `Status` and `Limit`."""
    values: IntArray | None = None
    """Shape ``(n,)``, integers that keep every bound and row; ``None`` if there are none, or in a relaxation."""
    objective: int | None = None  # objective of ``values``, recomputed in integers; ``None`` without values
    bound: int | None = None  # no solution is better than this. ``None`` if unknown
    seconds: float = 0.0  # wall-clock time of the solve, with building and passing the solver's model
    message: str = ""  # the cause, where status and limit do not tell all; may be empty
    duals: NDArray[np.float64] | None = None
    """Shape ``(m,)``: multipliers of the rows, from a relaxation; ``objective - duals @ A`` are the reduced costs."""
    relaxed_values: NDArray[np.float64] | None = None
    """Shape ``(n,)``: values of the relaxation, within tolerances and not verified."""
    basis: Basis | None = None  # of the relaxation, where one was asked for
    rounded: IntArray | None = None  # (n,) the relaxation rounded by diving, not verified
    outlived: str = ""  # why one solver of a race failed, where another went on; also part of ``message``
    failed: bool = False
    """
    The solver was killed, crashed, ran out of memory, could not start or contradicted itself; ``message`` says which.
    Another solver may do better.
    """


class Outcome(NamedTuple):
    """What a solver says at its end, of any model in floating point: nothing of it is verified."""

    claim: Status | Literal["unbounded"]
    limit: Limit = "none"
    values: NDArray[np.float64] | None = None  # (n,), where the claim is ``optimal`` or ``feasible``
    bound: float | None = None  # on the model's own objective; None if unknown
    message: str = ""


@dataclass(frozen=True, eq=False)
class Progress:
    """News from a running solve: the best objective and bound so far, and the values when they are new."""

    objective: int | None
    bound: int | None
    """``objective``, ``bound``: As in `Solution`; ``None`` while unknown."""
    seconds: float  # since the solve began
    values: IntArray | None = None  # shape ``(n,)``, verified; ``None`` if only the bound moved
    duals: NDArray[np.float64] | None = None
    relaxed_values: NDArray[np.float64] | None = None
    """``duals``, ``relaxed_values``: As in `Solution`, where a relaxation is rounded."""
