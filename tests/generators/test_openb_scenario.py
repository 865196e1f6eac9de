"""openb's pods with their times: a load inside the time of the arrivals, by dividing these."""

from __future__ import annotations

from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.build import instance, job
from placeopt.formats import read_openb_run_times
from placeopt.generators import openb_scenario

POD_COLUMNS = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"),
    *("gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"),
)
"""All columns of the trace."""


def test_arrivals_are_divided_until_the_load_is_there() -> None:
    """Four jobs of 2 GPUs for 10 s that come a minute apart, on 4 GPUs: the more they overlap, the higher the load."""
    jobs = [job(f"p{i}", gpus=2, arrival_ms=60_000 * i + 500) for i in range(4)]
    made = openb_scenario(instance(1, jobs), dict.fromkeys((j.id for j in jobs), 10_000), load=0.9)
    gpus = len(made.cluster.machines[0].gpus)
    assert gpus == 4
    at = [arrival.job.arrival_ms for arrival in made.arrivals]
    assert at[0] == 0
    held = sum(2 * min(10_000, at[-1] - one) for one in at)
    assert held / (gpus * at[-1]) == pytest.approx(0.9, rel=0.02)
    assert made.arrivals[0].job.options[0].run_time_ms == 10_000
    assert "divided by" in made.note
    with pytest.raises(BadInput, match="more than all 4 pods"):
        openb_scenario(instance(40, jobs), dict.fromkeys((j.id for j in jobs), 10_000), load=0.9)


def test_run_times_are_from_scheduling_to_deletion(tmp_path: Path) -> None:
    """Where a pod has no scheduling time, from its creation; at least a millisecond."""
    path = tmp_path / "pods.csv"
    rows = ("a,1,1,1,1000,,LS,Running,5,25,15", "b,1,1,1,1000,,LS,Running,5,25,", "c,1,1,1,1000,,LS,Failed,5,5,5")
    path.write_text("\n".join([",".join(POD_COLUMNS), *rows, ""]))
    assert read_openb_run_times(path) == {"a": 10_000, "b": 20_000, "c": 1}
    path.write_text("\n".join([",".join(POD_COLUMNS), "a,1,1,1,1000,,LS,Running,5,x,", ""]))
    with pytest.raises(BadInput, match="expected seconds"):
        read_openb_run_times(path)
