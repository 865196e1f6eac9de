"""What is proven of a round: bounds on value, cost and GPU share, what each proof leaves out; and the news of it."""

from __future__ import annotations

from dataclasses import dataclass

FAR = 1 / 128
"""Gap of value from which on a plan is far from its bound, or from another plan."""


def relative_gap(objective: int | None, bound: int | None) -> float | None:
    """Return ``|bound - objective| / max(1, |objective|)``, None while either is unknown."""
    if objective is None or bound is None:
        return None
    return abs(bound - objective) / max(1, abs(objective))


@dataclass
class Bounds:
    """The best bounds so far. They move one way only."""

    value: int  # upper bound on the value of plans of the problem that stages see, which look-ahead may have narrowed
    whole_value: int  # upper bound on the value of any plan of the round as it was given: the bound that a plan states
    gpu_milli: int  # upper bound on the GPU share placed, in thousandths
    cost: int | None = None  # lower bound on the cost of plans worth as much as the best one, or more; None: unknown
    relaxes: tuple[str, ...] = ("everything but that each job fits alone",)
    cost_relaxes: tuple[str, ...] = ()
    """``relaxes``, ``cost_relaxes``: What the proofs of ``whole_value`` and of ``cost`` leave out."""
    narrowed: bool = False  # whether stages see only a part of the round

    def prove_value(self, bound: int | None, relaxes: tuple[str, ...] = (), *, of_whole: bool = False) -> None:
        """
        Lower the bound on value, if ``bound`` is lower.

        ``relaxes`` says what the proof leaves out, ``of_whole`` that it holds for the whole round, not only for the
        part to which it may have been narrowed.
        """
        if bound is None:
            return
        self.value = min(self.value, bound)
        if self.narrowed and not of_whole:
            return
        if bound < self.whole_value:
            self.whole_value, self.relaxes = bound, relaxes
        elif bound == self.whole_value and len(relaxes) < len(self.relaxes):
            self.relaxes = relaxes

    def prove_cost(self, bound: int | None, relaxes: tuple[str, ...] = ()) -> None:
        """
        Raise the bound on the cost of plans that are worth as much as the best one found so far, or more.

        It still holds once a plan of greater value is found: plans worth that are among those that it is about.
        ``relaxes`` says what the proof leaves out.
        """
        if bound is not None and (self.cost is None or bound > self.cost):
            self.cost, self.cost_relaxes = bound, relaxes

    def prove_gpu_milli(self, bound: int) -> None:
        """Lower the bound on the GPU share placed."""
        self.gpu_milli = min(self.gpu_milli, bound)


@dataclass(frozen=True)
class Progress:
    """
    News from a round.

    Attributes
    ----------
    seconds
        Since the call.
    stage
        The stage at work.
    value, value_bound
        Value placed, and its bound; None where unknown.
    cost, cost_bound
        The same of the cost level, once it is being solved.
    """

    seconds: float
    stage: str
    value: int | None
    value_bound: int | None
    cost: int | None = None
    cost_bound: int | None = None

    @property
    def gap(self) -> float | None:
        """Relative gap of the first level that is not proven."""
        gap = relative_gap(self.value, self.value_bound)
        return relative_gap(self.cost, self.cost_bound) if gap == 0 and self.cost is not None else gap
