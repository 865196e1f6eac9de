"""
Small rounds by all stages, against brute force: no bound excludes the optimum, and no plan is called optimal below it.

The kind says whether the plan is the optimum, and whether it is proven.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from campaigns.harness import Campaign, Case
from helpers.brute_force import optimum
from helpers.claims import complaints, untrue
from placeopt import Engine
from placeopt.problem import compile_problem
from strategies import seeded
from strategies.rounds import make_gang_round, make_round

KINDS = (make_round, make_gang_round)
LIMIT_S = 1.0


def cases(seed: int) -> Iterator[Case]:
    """Solve one round after the other."""
    dice = random.Random(seed)
    with Engine() as engine:
        while True:
            name = f"optima {dice.getrandbits(60)}"
            round_ = dice.choice(KINDS)(seeded(name))
            plan = engine.solve(round_, time_limit_s=LIMIT_S)
            best, least, _ = optimum(compile_problem(round_))
            costs = [level.objective for level in plan.levels if level.name == "cost"]
            reached = plan.levels[0].objective == best and costs in ([], [least])
            kind = (
                f"{'the optimum' if reached else 'below it'}, {'proven' if plan.status == 'optimal' else 'not proven'}"
            )
            yield Case(kind, [f"{name}: {what}" for what in complaints(round_, plan) + untrue(plan, best, least)])


CAMPAIGN = Campaign("is what plans of small rounds claim true?", cases, 10_000, 60)
