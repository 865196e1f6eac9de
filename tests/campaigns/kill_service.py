"""
Kill the service at random moments and start it anew: nothing that was answered is lost, nothing is done twice.

``placeopt serve --stdio`` gets SIGKILL under load, each seed with a folder of its own. What is sent and what has to
hold after every start: `helpers.service_kills`.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from campaigns.harness import Campaign, Case
from helpers.service_kills import MOMENTS, WEIGHTS, Kills
from placeopt import generate

KILLS, JOBS, NODES, GPUS = 10, 20, 6, 4
"""Of a folder."""


def cases(seed: int) -> Iterator[Case]:
    """Kill the service of one folder after the other some times."""
    for number in count(seed):
        moments = random.Random(number).choices(MOMENTS, WEIGHTS, k=KILLS)
        round_ = generate("preempt", jobs=JOBS, nodes=NODES, gpus=GPUS, seed=number)
        with tempfile.TemporaryDirectory() as folder:
            found = Kills(Path(folder), round_, number).run(moments)
        figures = {name: getattr(found, name) for name in ("answered", "repeated", "replays")}
        yield Case(f"{KILLS} kills", [f"seed {number}: {fault}" for fault in found.faults], figures)


CAMPAIGN = Campaign("is nothing lost and nothing done twice when the service is killed?", cases, 40, 60)
