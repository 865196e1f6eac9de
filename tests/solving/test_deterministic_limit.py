"""The time limit also holds in deterministic mode, where work ends the stages and the clock is only a guard."""

import random
import time
from itertools import combinations

import pytest

from placeopt import Instance, build, solve, violations
from placeopt.model import Communication, Edge, Link

SIDE, LIMIT_S, STEP_S = 4, 2.0, 0.01


def mesh_of_workers() -> Instance:
    """Return a round of one gang: 16 workers with 70 edges, on one machine whose 16 GPUs form a mesh."""
    at = [(row, column) for row in range(SIDE) for column in range(SIDE)]
    links = [
        Link(gpus=(a, b))
        for a, b in combinations(range(len(at)), 2)
        if abs(at[a][0] - at[b][0]) + abs(at[a][1] - at[b][1]) == 1
    ]
    pairs = random.Random(5).sample(list(combinations(range(len(at)), 2)), 70)
    edges = tuple(Edge(ranks=pair, weight=1 + i % 9) for i, pair in enumerate(pairs))
    gang = build.gang("gang", workers=len(at), communication=Communication(weight=1, edges=edges))
    return build.instance(1, [gang], machines=[build.machine(gpus=len(at), links=tuple(links))])


@pytest.mark.parametrize("method", ["auto", "stranding", "drb"])
def test_the_clock_ends_every_heuristic(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The ranks of the gang were improved without end: 16.5 s of 2.

    The clock goes on by a step whenever it is read, so the solve ends after so many readings, however fast it runs.
    """
    made = mesh_of_workers()
    readings = 0

    def clock() -> float:
        nonlocal readings
        readings += 1
        return start + readings * STEP_S

    start = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", clock)
        plan = solve(made, method=method, time_limit_s=LIMIT_S, deterministic=True, isolation="thread")
    assert readings < 2 * LIMIT_S / STEP_S
    assert plan.limit == "time"
    assert violations(made, plan) == []
    assert [placed.job for placed in plan.placements] == ["gang"]
