"""Many independent tasks side by side, through joblib: threads, processes, or what the caller has configured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def fan_out(
    task: Callable[[T], R],
    items: Sequence[T],
    jobs: int | None,
    *,
    prefer: Literal["threads", "processes"] = "processes",
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[R]:
    """
    Yield the results as they come, in any order.

    Parameters
    ----------
    task, items
        What is done, and with what. With processes both must be picklable, and so must the results.
    jobs
        How many side by side; 1: one after the other, in this thread. None: what ``joblib.parallel_config`` says, and
        without it one.
    prefer
        Threads for tasks that only wait for others. ``joblib.parallel_config(backend=...)`` overrules it: that is the
        way to dask and ray.
    cancelled
        Asked between results; true ends it. What has been begun by then is waited for, and its results are dropped.
    """
    if jobs == 1 or len(items) < 2:
        for item in items:
            if cancelled is not None and cancelled():
                return
            yield task(item)
        return
    try:
        yield from _side_by_side(task, items, jobs, prefer, cancelled)
    except Exception:  # Ctrl-C reaches the other processes too, and their pool breaks: no news, if it was cancelled
        if cancelled is None or not cancelled():
            raise


def _side_by_side(
    task: Callable[[T], R],
    items: Sequence[T],
    jobs: int | None,
    prefer: Literal["threads", "processes"],
    cancelled: Callable[[], bool] | None,
) -> Iterator[R]:
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    backend, configured = get_active_backend(prefer=prefer)
    width = (configured or 1) if jobs is None else jobs
    if not getattr(backend, "supports_return_generator", False):  # all at once, a few rounds at a time
        for first in range(0, len(items), 4 * max(width, 1)):
            if cancelled is not None and cancelled():
                return
            calls = [delayed(task)(item) for item in items[first : first + 4 * max(width, 1)]]
            yield from Parallel(n_jobs=jobs, prefer=prefer)(calls)
        return
    parallel = Parallel(
        n_jobs=jobs, prefer=prefer, batch_size=1, pre_dispatch="n_jobs", return_as="generator_unordered"
    )
    yield from parallel(delayed(task)(item) for item in items if cancelled is None or not cancelled())
