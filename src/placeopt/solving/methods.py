"""The methods that ``solve`` offers: how greedy places jobs, and which stages run. The order is what is read here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from placeopt.errors import BadInput
from placeopt.solvers.racing import RACE
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.stage import Relaxations, Stage
from placeopt.solving.stages.annealing import Annealing
from placeopt.solving.stages.bound import Bound
from placeopt.solving.stages.capacity_relaxation import CapacityRelaxationBound
from placeopt.solving.stages.changes import MakeRoom, RankMapping
from placeopt.solving.stages.cost_relaxation import CostRelaxationBound
from placeopt.solving.stages.earlier_plans import GivenPlan, JoinedPlan, PreviousPlan
from placeopt.solving.stages.exact import Exact
from placeopt.solving.stages.fillings import FillingCosts, Fillings
from placeopt.solving.stages.first_plan import FirstPlan
from placeopt.solving.stages.gpu_patterns import GpuPatternPlan
from placeopt.solving.stages.greedy import Greedy, StrictPriority
from placeopt.solving.stages.portfolio import Alternative, DrbPlan, SwafPlan
from placeopt.solving.stages.rounding import RoundRelaxations


@dataclass(frozen=True)
class Method:
    """
    A way to solve a round.

    Attributes
    ----------
    greedy
        How greedy places jobs; later stages fill up plans the same way.
    first
        The stage that makes the first plan, and those that run once after it.
    turns
        Those that go on from there, in turns.
    """

    greedy: GreedyRule
    first: tuple[FirstPlan, *tuple[Stage, ...]]
    turns: tuple[Stage, ...] = ()

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages."""
        return (*self.first, *self.turns)

    @property
    def exact(self) -> tuple[Exact, ...]:
        """Its exact stages."""
        return tuple(stage for stage in self.turns if isinstance(stage, Exact))

    @property
    def needs_solver(self) -> bool:
        """Whether any stage solves a model."""
        return any(stage.uses_solver for stage in self.stages)

    @property
    def is_greedy(self) -> bool:
        """Whether it needs a solver for nothing but the bound."""
        return not self.without_bound().needs_solver

    def without_bound(self) -> Method:
        """Return the method without the stage that only bounds the value."""
        first, *others = self.first
        stages = (stage for stage in others if not isinstance(stage, Bound))
        return replace(self, first=(replace(first, bounds=False), *stages))

    def for_strict_priorities(self) -> Method:
        """Return the method for rounds in which priorities are strict: one after the other, by the method's score."""
        return Method(GreedyRule(self.greedy.score), (FirstPlan((StrictPriority(),), bounds=False),))

    def from_start(self) -> Method:
        """Return the method that goes on from given placements, with greedy only if they are far from a bound."""
        has_bound = any(isinstance(stage, Bound) for stage in self.first)
        return replace(self, first=(*self.first, Greedy(only_if_far=True))) if has_bound else self


def greedy_method(
    score: str,
    order: str | None = "fcfs",
    *,
    strict: bool = False,
    shape: Literal["value", "swaf"] = "value",
    chooser: str | None = None,
) -> Method:
    """Return a method that places jobs by greedy alone, and bounds the value."""
    first = FirstPlan((JoinedPlan(), Greedy(), PreviousPlan()))
    return Method(GreedyRule(score, order, strict, shape, chooser), (first, RankMapping(), MakeRoom(), Bound()))


def solver_method(*stages: Stage, score: str = "stranding", portfolio: tuple[Alternative, ...] = ()) -> Method:
    """
    Return a method that goes on from the first plan in turns, beside the search if that is one of ``stages``.

    Parameters
    ----------
    *stages
        Stages after the first plan and the bound, in their order, behind those that permute ranks and make room.
    score
        Name of greedy's score.
    portfolio
        What competes with greedy for the first plan.

    Returns
    -------
    Method
        To be entered in ``METHODS``.
    """
    searches = any(isinstance(stage, Annealing) for stage in stages)
    heuristics: tuple[Stage, ...] = (JoinedPlan(), Greedy(), *portfolio, PreviousPlan())
    first = FirstPlan(heuristics, goes_on=True, searches=searches)
    return Method(GreedyRule(score), (first, Bound()), (RankMapping(places_again=searches), MakeRoom(), *stages))


def exact_method(formulation: str, solver: str) -> Method:
    """Return a method that goes on from greedy's plan with one exact model."""
    return solver_method(Exact(formulation, solver))


METHODS: dict[str, Method] = {
    "auto": solver_method(
        Relaxations(
            "value",
            (
                GpuPatternPlan(),
                CapacityRelaxationBound(),
                RoundRelaxations(for_value=True),
                Fillings(beside_patterns=True),
            ),
        ),
        Relaxations("cost", (CostRelaxationBound(), RoundRelaxations(), FillingCosts())),
        Annealing(),
        Exact("counts", RACE),
        score="auto",
        portfolio=(DrbPlan(), SwafPlan()),
    ),
    "counts": exact_method("counts", "highs"),
    "counts-cpsat": exact_method("counts", "cpsat"),
    "counts-cbc": exact_method("counts", "pulp-cbc"),
    "filling-costs": solver_method(Relaxations("cost", (FillingCosts(),))),
    "assignment": exact_method("assignment", "cpsat"),
    "assignment-highs": exact_method("assignment", "highs"),
    "fcfs": greedy_method("first_fit"),
    "fcfs-strict": greedy_method("first_fit", strict=True),
    "best-fit": greedy_method("best_fit"),
    "dot-product": greedy_method("dot_product"),
    "gpu-packing": greedy_method("gpu_packing"),
    "gpu-clustering": greedy_method("gpu_clustering"),
    "random": greedy_method("random"),
    "horus": greedy_method("horus"),
    "obp": greedy_method("obp"),
    "fgd": greedy_method("fgd"),
    "least-slowdown": greedy_method("least_slowdown"),
    "drb": greedy_method("best_fit", chooser="drb"),
    "drb-strict": greedy_method("best_fit", chooser="drb", strict=True),
    "drb-sc17": greedy_method("best_fit", chooser="drb-sc17"),
    "sc17-fcfs": greedy_method("sc17_fcfs", strict=True),
    "sc17-bf": greedy_method("sc17_bf"),
    "swaf": greedy_method("best_fit", "swaf", shape="swaf"),
    "gpu-patterns": solver_method(Relaxations("value", (GpuPatternPlan(),)), score="auto"),
    "stranding": greedy_method("stranding", None),
    "search": solver_method(
        Relaxations("value", (CapacityRelaxationBound(),)),
        Relaxations("cost", (CostRelaxationBound(), RoundRelaxations(), FillingCosts())),
        Annealing(),
    ),
    "annealing": solver_method(Annealing()),
    "prices": greedy_method("prices"),
    "fillings": solver_method(Relaxations("value", (Fillings(),))),
    "given": Method(GreedyRule(), (FirstPlan((GivenPlan(),)), Bound())),
}


def method_of(name: str) -> Method:
    """
    Return the method of that name.

    Raises
    ------
    BadInput
        Names the methods that there are.
    """
    if not isinstance(name, str) or name not in METHODS:
        raise BadInput(f"method: no method {name!r}; known: {', '.join(METHODS)}")
    return METHODS[name]
