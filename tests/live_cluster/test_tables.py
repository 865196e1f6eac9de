"""Single jobs placed by a table of all costs go where candidates would have put them, whatever happens between."""

import numpy as np
import pytest

from placeopt import Engine, Policy
from placeopt.build import instance, job, machine, node
from placeopt.live_cluster import incremental_placer
from placeopt.model import Job


def new_job(name: str, rng: np.random.Generator) -> Job:
    """A share of a GPU, one or two of them, or none."""
    gpus = int(rng.choice([0, 1, 1, 1, 2]))
    share = int(rng.choice([190, 320, 470, 650, 810, 1000])) if gpus == 1 else 1000
    return job(name, gpus=gpus, gpu_milli=share, cpu_millicores=int(rng.integers(0, 6)) * 1000)


def story(seed: int, method: str) -> list[object]:
    """Jobs come, go, and find no room; nodes are drained, added and taken away. Returns where everything went."""
    rng = np.random.default_rng(seed)
    kinds = [machine("two", gpus=2, cpu_millicores=12_000), machine("four", gpus=4)]
    nodes = [node(f"n{i}", str(rng.choice(["two", "four"]))) for i in range(6)]
    told: list[object] = []
    with Engine(isolation="thread") as engine:
        engine.load(instance(nodes, machines=kinds, policy=Policy(share_mode="fraction")))
        for step in range(60):
            name = f"j{step}"
            engine.update(add_jobs=[new_job(name, rng)])
            plan = engine.place([name], method=method)
            engine.commit(plan)
            told.append([(a.node, dict(a.gpus)) for p in plan.placements for a in p.assignments])
            running = [one.job for one in engine.snapshot.running]
            if running and rng.random() < 0.4:
                engine.release(str(rng.choice(running)))
            if step % 15 == 7:
                engine.update(
                    nodes={"n0": "drain" if step < 30 else "undrain", f"new{step}": node(f"new{step}", "two")}
                )
    return told


@pytest.mark.parametrize("method", ["prices", "fgd"])
@pytest.mark.parametrize("seed", range(3))
def test_with_and_without_tables(seed: int, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same placements, down to the GPU."""
    used: list[object] = []
    made = incremental_placer.table_for

    def counted(*args: object) -> object:
        used.append(made(*args))  # type: ignore[arg-type]
        return used[-1]

    monkeypatch.setattr(incremental_placer, "table_for", counted)
    fast = story(seed, method)
    assert any(table is not None for table in used)
    monkeypatch.setattr(incremental_placer, "table_for", lambda *args: None)
    assert fast == story(seed, method)
