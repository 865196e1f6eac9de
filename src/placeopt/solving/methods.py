"""The methods that ``solve`` knows: which stages run, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from placeopt.errors import BadInput


@dataclass(frozen=True)
class Method:
    """
    A recipe of stages.

    ``score`` is greedy's; ``auto`` is ``share_prices`` where there are many fractions of GPUs that do not divide one
    another, else ``stranding``. ``order`` None takes the policy's. ``shape`` is how greedy chooses among a job's
    options: the most valuable one that fits, or the one that SWAF settles on beforehand; ``window`` also lets the
    queue's first jobs compete for the next place.
    ``strict`` blocks the queue behind the first job that does not fit. ``exact``
    lists (formulation, solver) pairs, tried in turn until the round is proven; solver ``race`` is HiGHS and CP-SAT side
    by side, each with its share of the threads (HiGHS alone with one thread, or with options meant for one solver).
    ``repeatable`` replaces them in deterministic mode: CP-SAT's deterministic time keeps pace with the clock, HiGHS's
    work stands still at the root.
    ``chooser`` names what chooses places in the first pass instead of ``score``, which later stages then use.
    ``patterns`` has fillings of whole nodes bound and improve the value; where exact stages follow, of large rounds
    only.
    ``arrange`` has arrangements of nodes prove the cost before them, where the value is proven.
    ``search`` has large neighbourhoods improve value and cost, and flows bound the cost; where exact stages follow, in
    rounds that are too large for them.
    """

    score: str = "stranding"
    chooser: str | None = None
    shape: Literal["value", "swaf", "window"] = "value"
    order: str | None = None
    strict: bool = False
    bound: bool = True
    patterns: bool = False
    arrange: bool = False
    search: bool = False
    fillings: bool = False
    exact: tuple[tuple[str, str], ...] = ()
    repeatable: tuple[tuple[str, str], ...] | None = None

    @property
    def is_greedy(self) -> bool:
        """Whether all it needs a solver for is the bound."""
        return not (self.patterns or self.arrange or self.search or self.fillings or self.exact)

    @property
    def needs_solver(self) -> bool:
        """Whether any stage solves a model."""
        return self.bound or self.patterns or self.arrange or self.search or bool(self.exact)


METHODS: dict[str, Method] = {
    "auto": Method(
        score="auto",
        patterns=True,
        fillings=True,
        arrange=True,
        search=True,
        exact=(("counts", "race"),),
        repeatable=(("counts", "cpsat"),),
    ),
    "counts": Method(exact=(("counts", "highs"),)),
    "counts-cpsat": Method(exact=(("counts", "cpsat"),)),
    "counts-cbc": Method(exact=(("counts", "pulp-cbc"),)),
    "arrangements": Method(arrange=True),
    "assignment": Method(exact=(("assignment", "cpsat"),)),
    "assignment-highs": Method(exact=(("assignment", "highs"),)),
    "fcfs": Method(score="first_fit", order="fcfs"),
    "fcfs-strict": Method(score="first_fit", order="fcfs", strict=True),
    "best-fit": Method(score="best_fit", order="fcfs"),
    "dot-product": Method(score="dot_product", order="fcfs"),
    "gpu-packing": Method(score="gpu_packing", order="fcfs"),
    "gpu-clustering": Method(score="gpu_clustering", order="fcfs"),
    "random": Method(score="random", order="fcfs"),
    "horus": Method(score="horus", order="fcfs"),
    "obp": Method(score="obp", order="fcfs"),
    "fgd": Method(score="fgd", order="fcfs"),
    "fgd-window": Method(score="fgd", order="fcfs", shape="window"),
    "least-slowdown": Method(score="least_slowdown", order="fcfs"),
    "drb": Method(score="best_fit", chooser="drb", order="fcfs"),
    "drb-strict": Method(score="best_fit", chooser="drb", order="fcfs", strict=True),
    "drb-sc17": Method(score="best_fit", chooser="drb-sc17", order="fcfs"),
    "sc17-fcfs": Method(score="sc17_fcfs", order="fcfs", strict=True),
    "sc17-bf": Method(score="sc17_bf", order="fcfs"),
    "swaf": Method(score="best_fit", order="swaf", shape="swaf"),
    "fillings": Method(score="auto", fillings=True),
    "stranding": Method(),
    "search": Method(search=True),
    "prices": Method(score="prices", order="fcfs"),
    "patterns": Method(patterns=True),
}


def method_of(name: str) -> Method:
    """Return the method called ``name``; ``BadInput`` names those that there are."""
    if name not in METHODS:
        raise BadInput(f"method: no method {name!r}; known: {', '.join(METHODS)}")
    return METHODS[name]
