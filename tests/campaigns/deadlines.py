"""
How far ``placeopt.solve`` overshoots its time limit: stored rounds by ``auto``, generated ones by every method.

Measured from the call to its return, so compiling, checking and starting the solver process count; reading the file
does not. Every plan has to pass referee and audit, and to come no later than the larger of 10 % and 0.1 s past its
limit: a fault on an idle machine only, since whoever shares the cores makes it later.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import count

from campaigns.harness import ROOT, Campaign, Case
from made_rounds import generate
from placeopt import Engine, audit, read_instance, violations
from placeopt.solving import METHODS

STORED = (
    "hand/dgx1-tour.json",
    "generated/uniform-50x16x8-s0.json.gz",
    "generated/varied-50x16x4-s0.json.gz",
    "generated/cubemesh-20x4x8-s0.json.gz",
    "generated/gangs-20x16x4-s0.json.gz",
    "openb/openb-first-100.json.gz",
    "openb/openb-first-500.json.gz",
    "openb/openb-first-2000.json.gz",
    "openb/openb-default.json.gz",
)
LIMITS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
SPECS = (("uniform", 4), ("uniform", 8), ("varied", 4), ("gangs", 8), ("fractions", 4), ("cubemesh", 8))


def cases(seed: int) -> Iterator[Case]:
    """Solve a stored and a generated round in turn; methods take turns."""
    dice, stored = random.Random(seed), [read_instance(ROOT / "instances" / name) for name in STORED]
    with Engine() as engine:
        for number in count():
            limit = dice.choice(LIMITS_S)
            if number % 2:
                instance, method = dice.choice(stored), "auto"
            else:
                spec, gpus = dice.choice(SPECS)
                jobs, method = dice.randint(50, 1500), list(METHODS)[number // 2 % len(METHODS)]
                instance = generate(spec, jobs=jobs, nodes=max(4, jobs // 8), gpus=gpus, seed=dice.randrange(10**6))
            assert instance.digest  # computed once, at the reader's expense
            began = time.monotonic()
            plan = engine.solve(instance, method=method, time_limit_s=limit)
            late = time.monotonic() - began - limit
            wrong = [violation.message for violation in violations(instance, plan)] + audit(instance, plan)
            if late > max(0.1 * limit, 0.1):
                wrong.append(f"{late:.3f} s late; {plan.seconds}")
            where = f"{instance.name}, {method}, limit {limit} s"
            yield Case(method, [f"{where}: {what}" for what in wrong], {"late_ms": 1000 * late})


CAMPAIGN = Campaign("is every plan there within its limit?", cases, 400)
