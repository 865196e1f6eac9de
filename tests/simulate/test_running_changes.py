"""Running jobs are stopped, moved and resized: nothing is lost, all is lawful, work is counted to the millisecond."""

from pathlib import Path

import pytest

from changing import audit, lively_scenario
from placeopt.model import Policy
from placeopt.model.policy import Changes, Weights
from placeopt.model.scheduling import Arrays, Scheduling
from placeopt.simulate import simulate, summarise
from scenarios import PLAIN, policy

SHARED = PLAIN.model_copy(update={"share_mode": "fraction"})
FREE = Policy(
    weights=Weights(communication=0, interference=0, fragmentation=0),
    changes=Changes(moves_max=4, preemptions_max=4, shrinks_max=4, move_price=1, shrink_price_per_worker=1),
)
POLICIES = [
    Scheduling(name="whole", method="stranding", policy=FREE),
    Scheduling(name="exact", policy=FREE),
    policy("best-fit", name="priority", order="priority", preempts="priority", policy=SHARED),
    policy("best-fit", name="aging", order="priority", aging_ms=5000, policy=SHARED),
    policy("best-fit", name="inference", order="inference_first", preempts="inference", policy=SHARED),
    policy("best-fit", name="las", order="las", preempts="las", levels_gpu_s=(5, 30), quantum_ms=4000, policy=SHARED),
    policy("best-fit", name="srtf", order="srtf", preempts="srtf", policy=SHARED),
    policy(
        "best-fit",
        name="capacity",
        order="capacity",
        arrays=Arrays(by="user", borrow_percent=100),
        preempts="capacity",
        policy=SHARED,
    ),
    policy("best-fit", name="load", order="inference_first", elastic="load", policy=SHARED),
    policy("best-fit", name="both", order="inference_first", elastic="load", preempts="inference", policy=SHARED),
    policy("fcfs", name="pods", elastic="pods", policy=SHARED),
]
each_policy = pytest.mark.parametrize("scheduling", POLICIES, ids=lambda one: one.name)


@each_policy
@pytest.mark.parametrize(
    "physics", [{}, {"keeps_work": False}, {"checkpoint_ms": 3000}], ids=["kept", "lost", "checkpoints"]
)
def test_every_change_is_lawful_and_no_work_is_won_or_lost(
    scheduling: Scheduling, physics: dict, tmp_path: Path
) -> None:
    """The log alone, read by a stranger: the referee takes every state, jobs end when their work is done."""
    world = lively_scenario(3, jobs=14, **physics)
    if not physics.get("keeps_work", True) and scheduling.name in ("whole", "exact"):
        pytest.skip("with nothing kept, rounds that weigh no times stop jobs for ever")
    log = tmp_path / "log"
    history = simulate(world, scheduling, log=log)
    assert history.finished
    assert history.stranded == ()
    count = audit(world, scheduling, log)
    told = summarise(history)
    assert (told.stops, told.moves, told.resizes, told.failures) == tuple(
        count[kind] for kind in ("stop", "move", "resize", "failure")
    )
    held = told.occupancy
    assert held.granted + held.idle == 1000 * held.total
    assert held.granted == sum(
        sum(sum(a.gpus.values()) for a in span.placement.assignments) * (span.end_ms - span.start_ms)
        for job in history.jobs
        for span in job.spans
    )


@each_policy
def test_the_same_log_again_and_from_any_cut(scheduling: Scheduling, tmp_path: Path) -> None:
    """Byte for byte, though decisions are repeated in another order of calls than they were found in."""
    world = lively_scenario(8, jobs=14)
    one, other = tmp_path / "one", tmp_path / "other"
    whole = simulate(world, scheduling, log=one)
    lines = one.read_bytes().splitlines(keepends=True)
    for cut in range(5, len(lines), 6):
        other.write_bytes(b"".join(lines[:cut]))
        again = simulate(world, scheduling, log=other, resume=True)
        assert other.read_bytes() == one.read_bytes()
        assert again.jobs == whole.jobs
