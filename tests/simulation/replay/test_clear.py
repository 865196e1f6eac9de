"""When the queue of a round is clear, by hand."""

import pytest

from placeopt import BadInput
from placeopt.build import instance, job, machine, running
from placeopt.model import Group, Hold, Instance
from placeopt.simulation.replay import clear

HOUR = 3_600_000
NOW = 1_764_200_100_000


def queue(ends_in: int | None = HOUR, *, run_time_ms: int | None = HOUR, **more: object) -> Instance:
    """One node of eight GPUs, held by a job that ends in an hour; three wait for all of it, for an hour each."""
    jobs = [
        job(name, gpus=8, arrival_ms=NOW - 100_000, run_time_ms=run_time_ms if name != "held" else None)
        for name in ("held", "b", "c", "d")
    ]
    end = None if ends_in is None else NOW + ends_in
    held = running(jobs[0], [("n0", range(8))], started_ms=NOW, expected_end_ms=end)
    return instance(1, jobs, machines=[machine("m", gpus=8)], running=[held], now_ms=NOW, **more)


def test_a_queue_by_hand() -> None:
    """Jobs start after one, two and three hours; the queue is clear after four."""
    found = clear(queue())
    assert (found.answer, found.unknown) == ("known", ())
    assert sorted((one.start_ms, one.end_ms) for one in found.waiting) == [
        (n * HOUR, (n + 1) * HOUR) for n in (1, 2, 3)
    ]
    assert (found.last_start_ms, found.clear_ms) == (3 * HOUR, 4 * HOUR)
    view = found.view()
    assert (view.figure("clear in"), view.verdict) == (4 * HOUR, "good")
    assert sorted(row[2:] for row in view.table("Runs").rows) == [(n * HOUR, (n + 1) * HOUR) for n in range(4)]


def test_run_times_that_are_not_stated() -> None:
    """Of a waiting job, and of what runs: nothing is known then, and they are named."""
    assert clear(queue(run_time_ms=None)).unknown == ("b", "c", "d")
    found = clear(queue(ends_in=None))
    assert (found.answer, found.unknown, found.clear_ms) == ("unknown", ("held",), None)
    assert "no run time of held" in found.view().title


def test_a_job_that_never_starts() -> None:
    """It asks for more GPUs than there are; the others do not wait for it."""
    base = queue()
    base = base.model_copy(update={"jobs": (*base.jobs, job("huge", gpus=16, run_time_ms=HOUR))})
    found = clear(base)
    assert (found.answer, found.clear_ms, found.last_start_ms) == ("never", None, None)
    [huge] = [one for one in found.waiting if one.start_ms is None]
    assert huge.job == "huge"
    assert "finds no place on the idle cluster" in huge.why
    assert [one.job for one in found.waiting if one.start_ms is not None] == ["b", "c", "d"]


def test_an_empty_queue_is_clear() -> None:
    """Once what runs has ended."""
    base = queue()
    found = clear(base.model_copy(update={"jobs": base.jobs[:1]}))
    assert (found.answer, found.waiting, found.last_start_ms, found.clear_ms) == ("known", (), 0, HOUR)


def test_what_is_not_played() -> None:
    """Room that is held without a job, and jobs of groups."""
    hold = Hold(id="h", node="n0", cpu_millicores=1)
    with pytest.raises(BadInput, match="'h' holds room"):
        clear(queue(holds=(hold,)))
    tree = job("tree", groups=(Group(id="lead"), Group(id="rest")), run_time_ms=HOUR)
    base = queue()
    with pytest.raises(BadInput, match="'tree' has groups"):
        clear(base.model_copy(update={"jobs": (*base.jobs, tree)}))
