"""
What a solver returns, verified.

Every value that a solver returns passes through a `Reading`, which believes nothing: sizes are compared, values are
rounded and put into the model again, objectives are recomputed in integers, bounds are rounded to the safe side, and
a claim that contradicts a verified solution is an error. A claim of optimality counts only if objective and bound
meet.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placeopt.linear import IntArray, LinearModel
from placeopt.solvers.certify import trivial_bound
from placeopt.solvers.result import Limit, Progress, Solution, SolveOptions, Status

OnProgress = Callable[[Progress], None]

LOOSE = 1e-6
"""Relative error granted to floats of a solver: the tolerance within which solvers call a row kept, by default."""
EXACT = 1e-9
"""The same for numbers that are integers but for their way through a float64: the least tolerance that solvers take."""

MAX_PROVEN = 1 << 46
"""Objectives up to which HiGHS and CBC see a unit more or less: not so in 1 of 60 random models near 1e15."""


def integer_tolerance(model: LinearModel) -> float:
    """
    Return how far from an integer a solver may leave a value, within what HiGHS and CBC take.

    So near that rounding moves the heaviest row by a quarter at most, which breaks none.
    """
    weights = np.bincount(model.row_of_nonzero, weights=np.abs(model.coefficients))
    return float(np.clip(1 / (4 * weights.max(initial=1.0)), EXACT, LOOSE))


class Reading:
    """
    Collects verified solutions and safe bounds of one solve, and draws the conclusion.

    Solvers may report from several threads at once.

    - ``model``, ``options``: What was asked. A feasible hint is the first solution, which is no news; in a relaxation
      it counts for nothing.
    - ``on_progress``: Told of every better solution and bound.
    """

    def __init__(self, model: LinearModel, options: SolveOptions, on_progress: OnProgress | None) -> None:
        self.model, self.options = model, options
        self.values: IntArray | None = None
        self.objective: int | None = None
        self.bound = trivial_bound(model)
        self._sign = 1 if model.sense == "max" else -1
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._on_progress: OnProgress | None = None
        if options.hint is not None and not options.relax:
            if len(options.hint) != model.num_variables:
                raise ValueError(f"hint has {len(options.hint)} values, the model {model.num_variables} variables")
            self.offer(options.hint)
        self._on_progress = on_progress

    @property
    def seconds(self) -> float:
        """Since the reading began."""
        return time.monotonic() - self._began

    @property
    def seconds_left(self) -> float:
        """Until the time limit; below 0 once it has passed."""
        return self.options.time_limit_s - self.seconds

    @property
    def believed(self) -> int:
        """The bound, or the trivial one where a verified solution is better than the bound."""
        contradicted = self.objective is not None and self._better(self.objective, self.bound)
        return trivial_bound(self.model) if contradicted else self.bound

    @property
    def is_at_gap(self) -> bool:
        """Whether solution and bound are as near as was asked for."""
        if self.objective is None:
            return False
        return abs(self.believed - self.objective) <= self.options.gap * max(1, abs(self.objective))

    def settled(self) -> Solution | None:
        """The solution of a model that no solver needs to see, or that solvers refuse; else ``None``."""
        model = self.model
        if np.any(model.lower > model.upper) or np.any(model.row_lower > model.row_upper):
            return Solution("infeasible", seconds=self.seconds, message="a lower bound exceeds its upper bound")
        empty = model.row_start[1:] == model.row_start[:-1]
        if np.any(empty & ((model.row_lower > 0) | (model.row_upper < 0))):  # PuLP drops them, readers of files differ
            return Solution("infeasible", seconds=self.seconds, message="a row without entries excludes 0")
        if model.num_variables:
            return None
        if self.offer(np.empty(0, dtype=np.int64)):
            return self.conclude("optimal")
        return Solution("infeasible", seconds=self.seconds)

    def offer(self, values: ArrayLike) -> bool:
        """
        Take values from a solver, shape ``(n,)``, as integers or floats near them.

        Returns whether they keep the model. If so and they are better than what was held, they are held and reported.
        """
        candidate = np.asarray(values)
        if candidate.shape != (self.model.num_variables,) or not np.isfinite(candidate).all():
            return False
        candidate = np.rint(candidate).astype(np.int64)
        if not self.model.is_feasible(candidate):
            return False
        objective = self.model.objective_value(candidate)
        with self._lock:
            if self.objective is None or self._better(objective, self.objective):
                self.values, self.objective = candidate, objective
                self._report(candidate)
        return True

    def offer_bound(self, bound: float, tolerance: float = LOOSE) -> None:
        """Take a bound from a solver, grant it a relative error of ``tolerance`` and round it to the safe side."""
        if not math.isfinite(bound):
            return
        slack = tolerance * max(1.0, abs(bound))
        self.offer_exact_bound(self._sign * math.floor(self._sign * bound + slack))

    def offer_exact_bound(self, bound: int) -> None:
        """Take a bound that was made safe before."""
        with self._lock:
            if self._better(self.bound, bound):
                self.bound = bound
                self._report(None)

    def withdraw_bound(self, bound: int | None) -> None:
        """Believe this bound in place of better ones that were reported before; None for no other than the trivial."""
        self.bound = trivial_bound(self.model) if bound is None else bound

    def proven(self, bound: float, tolerance: float = LOOSE, most: int = MAX_PROVEN) -> int | None:
        """
        Return the objective, where the final bound of a solver leaves nothing that is a unit better: it is optimal.

        Else None, and the bound is taken as `offer_bound` takes it. ``tolerance``: Relative error granted to a bound
        that is behind the objective. ``most``: Largest objective up to which the solver sees a unit more or less.
        """
        objective = self.objective
        if objective is not None and self.options.gap == 0 and abs(objective) <= most:
            distance = self._sign * (bound - objective)
            if -max(LOOSE, tolerance * abs(objective)) <= distance < 1:
                return objective
        self.offer_bound(bound)
        return None

    def report(self, **more: Any) -> None:
        """Report what is not verified here, by the names of `Progress`: a claim, or a relaxation's values and duals."""
        with self._lock:
            self._report(None, **more)

    def conclude(
        self, claim: Status, limit: Limit = "none", message: str = "", *, bound: int | None = None
    ) -> Solution:
        """
        Weigh what the solver claims against what was verified.

        - ``claim``: The solver's status, in our words.
        - ``limit``: What cut it short.
        - ``bound``: Final bound, exact, if the solver has one; that of the progress reports otherwise.

        Returns ``optimal`` only if objective and bound are equal. After an error, or a claim that contradicts a
        verified solution, that solution is still ``feasible``, with the trivial bound.
        """
        if bound is not None and self._better(self.bound, bound):
            self.bound = bound
        fault = message if claim == "error" else self._contradiction(claim)
        if fault:
            believed = trivial_bound(self.model)
            status: Status = "error" if self.values is None else "feasible"
            return replace(self._solution(status, limit, fault, bound=believed), failed=True)
        if claim == "infeasible":
            return self._solution("infeasible", "none", message, bound=None)
        if self.values is None:
            return self._solution("no_solution", limit, message, bound=self.bound)
        if self.objective == self.bound:
            return self._solution("optimal", "none", message, bound=self.bound)
        if claim == "optimal" and not message:
            at_gap = self.options.gap > 0
            message = "stopped at the gap asked for" if at_gap else "claimed optimal, but the bound is apart"
        return self._solution("feasible", limit, message, bound=self.bound)

    def cut(self, limit: Limit, message: str, *, failed: bool) -> Solution:
        """
        Return what was verified, where those who solve have no answer of their own.

        ``limit``, ``message``: What ended them. ``failed``: Whether that was neither clock nor caller.
        """
        held = self.conclude("feasible", limit)
        status: Status = "error" if failed and held.values is None else held.status
        causes = "; ".join(cause for cause in (message, held.message) if cause)
        return replace(held, status=status, message=causes, failed=failed)

    def _contradiction(self, claim: Status) -> str:
        if self.values is None or self.objective is None:
            return ""
        if claim == "infeasible":
            return "the solver claims infeasible, against a verified solution"
        if self._better(self.objective, self.bound):
            return f"the solver claims the bound {self.bound}, against a verified solution of {self.objective}"
        return ""

    def _solution(self, status: Status, limit: Limit, message: str, *, bound: int | None) -> Solution:
        return Solution(status, limit, self.values, self.objective, bound, self.seconds, message)

    def _better(self, one: int, other: int) -> bool:
        return self._sign * (one - other) > 0

    def _report(self, values: IntArray | None, **more: Any) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(self.objective, self.believed, self.seconds, values, **more))
