"""Slurm: what `placeopt import slurm` says about situations from public reports."""

from pathlib import Path

from placeopt import Instance, solve
from placeopt.formats import read_slurm

DATA = Path(__file__).resolve().parents[1] / "data" / "reports" / "slurm"


def reading(name: str, topology: str | None = None, preemption: str | None = None) -> Instance:
    return read_slurm(
        DATA / f"{name}.nodes.json",
        DATA / f"{name}.jobs.json",
        None if topology is None else DATA / topology,
        preemption=[] if preemption is None else [DATA / preemption],
    )


def test_memory_of_the_system_is_not_given() -> None:
    """Of 512,000 MiB MemSpecLimit keeps 32,000: 500,000 are never free."""
    found = reading("memspec")
    assert found.cluster.machines[0].memory_mib == 480_000
    assert solve(found, time_limit_s=5).placements == ()


def test_a_job_is_not_preempted_before_its_time() -> None:
    """PreemptExemptTime of an hour; the job started a minute ago."""
    assert [held.preemptible for held in reading("preempt", preemption="preempt.conf").running] == [False]


def test_a_list_of_sizes_is_no_range() -> None:
    """``-N 2,4,8`` on three free nodes: two."""
    found = reading("sizes")
    assert [option.workers for option in found.jobs[0].options] == [2, 4, 8]
    (placement,) = solve(found, time_limit_s=5).placements
    assert len(placement.assignments) == 2
