"""
No plan is below that of greedy alone under the same limit.

Rounds of every generator: twenty of 8 to 512 jobs, 0.5 s each, then one of 2,000 to 10,000 jobs, 10 s. The kind says
how large, which heuristic made the best first plan, and which did not end. Times are faults on an idle machine only.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from campaigns.harness import Campaign, Case
from made_rounds import SPECS, generate
from placeopt import BadInput, Engine, Instance
from rounds import GREEDY, best_first, cut_short, objective

EVERY = 21
"""One round of so many is large."""
OVER, OVER_S = 0.03, 0.05
"""A plan may be late by this part of the limit, and so many seconds."""


class Size(NamedTuple):
    """Least and most jobs of rounds, jobs a node, and the seconds for each."""

    least: int
    most: int
    per_node: tuple[int, ...]
    limit_s: float


SIZES = {"small": Size(8, 512, (2, 4, 8, 10), 0.5), "large": Size(2_000, 10_000, (4, 8, 10, 20), 10.0)}


def cases(seed: int) -> Iterator[Case]:
    """Solve one round after the other, by all stages and by greedy alone."""
    dice = random.Random(seed)
    with Engine() as engine:
        engine.solve(generate("uniform", jobs=50, nodes=8, gpus=8, seed=1), time_limit_s=1)
        for number in count(1):
            name = "small" if number % EVERY else "large"
            yield one_round(engine, drawn(dice, SIZES[name]), name)


def drawn(dice: random.Random, size: Size) -> Instance:
    """Return a round of some generator; not every one has rounds of every size."""
    while True:
        jobs = round(size.least * (size.most / size.least) ** dice.random())
        nodes = max(2, jobs // dice.choice(size.per_node))
        try:
            return generate(
                dice.choice(sorted(SPECS)),
                jobs=jobs,
                nodes=nodes,
                gpus=dice.choice((4, 8, 16)),
                seed=dice.getrandbits(30),
            )
        except BadInput:
            continue


def one_round(engine: Engine, instance: Instance, name: str) -> Case:
    """Solve a round twice, and compare."""
    limit = SIZES[name].limit_s
    began = time.monotonic()
    plan = engine.solve(instance, time_limit_s=limit)
    late = time.monotonic() - began - limit
    wrong = [f"{stage.name} failed: {stage.detail}" for stage in plan.stages if stage.outcome == "failed"]
    if late > OVER * limit + OVER_S:
        wrong.append(f"{late:.3f} s late")
    greedy = engine.solve(instance, method=GREEDY, time_limit_s=limit)
    if objective(plan) < objective(greedy):
        wrong.append(f"{objective(plan)} is below greedy's {objective(greedy)}")
    kind = ", ".join([f"{name}, first plan of {best_first(plan)}", *(f"{one} cut" for one in cut_short(plan))])
    return Case(kind, [f"{instance.name}, limit {limit} s: {what}" for what in wrong], {f"{name}_late_ms": 1000 * late})


CAMPAIGN = Campaign("is a plan ever below greedy's at the same limit?", cases, 1_050, 40)
