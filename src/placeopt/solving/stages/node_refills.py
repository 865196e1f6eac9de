"""Stage ``node-refills``: nodes are emptied and filled again for value, in rounds far from their bound."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.formulations.fillings import shares_nest
from placeopt.heuristics.node_refills import NodeRefills
from placeopt.problem.free_capacity import room_decides
from placeopt.solving import sizes
from placeopt.solving.budget import SHARE_BEFORE_EXACT
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import has_many_fractions
from placeopt.solving.stage import StageReport

FIRST_STEPS, STEPS_PER_SECOND = 30, 30
"""Steps in deterministic mode, of 1 to 5 ms each: at first, and per second of the time limit."""
STALL, STALL_PER_NODE = 50, 10
"""Steps in a row without more value before the stage ends."""
RESERVES = 2.0
"""Time reserved for the offer at the end, in multiples of what the last one took."""


@dataclass(frozen=True)
class RefillNodes:
    """
    Improves the value of the best plan by `NodeRefills`, and offers what that ends with.

    Where CPU, memory or many shares bind at once, orders of greedy differ by several per cent of the value, and no
    relaxation tells which is good; and a search over jobs by value per GPU misses what binds.
    """

    name: ClassVar[str] = "node-refills"
    uses_solver: ClassVar[bool] = False
    after_patterns: bool = False
    """Whether it runs in the rounds that patterns suit, of nodes or of GPUs, after them; else in the others."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where the plan is far from the bound, and any job may overtake others."""
        if reason := context.budget.stop_reason():
            return reason
        if context.is_closed:
            return "the round is proven, or within the gap"
        if not context.is_far:
            return "the plan is close to the bound"
        if (shares_nest(context.problem) or has_many_fractions(context.problem)) != self.after_patterns:
            return "patterns come first" if not self.after_patterns else "it ran before"
        if context.greedy.shape != "value" or context.greedy.strict:
            return "the method does not choose jobs and options by their value"
        return None if room_decides(context.problem) else "more than shares and resources decides what a node takes"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Refill nodes until time or work ends it, or nothing is gained."""
        budget, incumbent = context.budget, context.incumbent
        share = SHARE_BEFORE_EXACT if sizes.may_be_built(context, "counts") else 1.0
        most = (0 if budget.slice else FIRST_STEPS) + budget.steps(STEPS_PER_SECOND)
        with budget.heuristic(share, reserve_s=RESERVES * budget.offer_s) as ends:
            search = NodeRefills(
                context.problem,
                incumbent.allocation,
                seed=context.draw_seed(),
                stop=lambda: budget.stopped() or time.monotonic() > ends,
            )
            gains = context.bounds.value - incumbent.value
            first, stall = search.value, STALL + STALL_PER_NODE * context.problem.num_nodes
            steps = last = 0
            while steps < most and steps - last < stall and search.value - first < gains and time.monotonic() <= ends:
                steps += 1
                if search.step():
                    last = steps
        offer = incumbent.offer(search.allocation()) if search.value > first else None
        if steps >= most:
            budget.note_limit("work")
        yield StageReport(f"{steps} steps", offer=offer)
