"""
Independent tasks in parallel, through joblib: in threads or processes of this machine, or where the caller says.

Under ``joblib.parallel_config(backend="dask")`` or ``"ray"`` they go there; files are named by their paths, so all
machines must see the same ones.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Literal, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def run_parallel(
    task: Callable[[T], R],
    items: Iterable[T],
    jobs: int | None,
    *,
    prefer: Literal["threads", "processes"] = "processes",
    cancelled: Callable[[], bool] | None = None,
    ahead: bool = False,
    due: float = math.inf,
) -> Iterator[R]:
    """
    Yield the results in the order of completion.

    Parameters
    ----------
    task, items
        The function and its arguments, each of which is made when it is sent. With processes, they and the results must
        be picklable.
    jobs
        Number of parallel tasks; 1: sequentially, in this thread. None: as ``joblib.parallel_config`` states, by
        default one.
    prefer
        Threads for tasks that only wait for other processes. ``joblib.parallel_config(backend=...)`` overrides it.
    cancelled
        Asked ten times a second; true ends the iteration. Tasks at work have a second to end, then processes are ended;
        threads, and tasks of dask and ray, are waited for.
    ahead
        Whether each process is sent its next task while it works on one, for tasks that take long to pack.
    due
        Moment of ``time.monotonic()`` that ends the iteration: no task begins later, and processes at work are ended,
        or still starting. Not supported by dask and ray.
    """
    if jobs == 1 or (isinstance(items, Sized) and len(items) < 2):
        for item in items:
            if (cancelled is not None and cancelled()) or time.monotonic() >= due:
                return
            yield task(item)
        return
    try:
        yield from _side_by_side(task, items, jobs, prefer, cancelled, ahead, due)
    except (Exception, KeyboardInterrupt):  # Ctrl-C ends the other processes too: no news, if it was cancelled
        if cancelled is None or not cancelled():
            raise


def width_of(jobs: int | None) -> int:
    """Return the number of parallel tasks: ``jobs``, or that of ``joblib.parallel_config``."""
    if jobs is not None:
        return jobs
    from joblib.parallel import get_active_backend

    backend, configured = get_active_backend()
    return max(1, int(backend.effective_n_jobs(configured or 1)))


def _side_by_side(
    task: Callable[[T], R],
    items: Iterable[T],
    jobs: int | None,
    prefer: Literal["threads", "processes"],
    cancelled: Callable[[], bool] | None,
    ahead: bool,
    due: float,
) -> Iterator[R]:
    from multiprocessing import TimeoutError as WaitedInVain

    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend(prefer=prefer)
    width = width_of(jobs)
    if not getattr(backend, "supports_return_generator", False):  # a few batches at a time
        left = iter(items)
        while some := list(islice(left, 4 * width)):
            if cancelled is not None and cancelled():
                return
            yield from Parallel(n_jobs=jobs, prefer=prefer)([delayed(task)(item) for item in some])
        return
    parallel = Parallel(
        n_jobs=jobs,
        prefer=prefer,
        batch_size=1,
        pre_dispatch="2*n_jobs" if ahead else "n_jobs",
        return_as="generator_unordered",
    )
    # Processes that start now inherit it; otherwise a Ctrl-C ends in what each of them is just importing.
    with _uninterruptible() if prefer == "processes" else nullcontext():
        results = parallel(
            delayed(_interruptible)(task, item) for item in items if cancelled is None or not cancelled()
        )

    def bound() -> None:
        """Bound the wait for the next result: joblib reads it all the time, and ends its processes where it is over."""
        left_s = max(0.0, due - time.monotonic())
        if prefer == "processes" and cancelled is not None and cancelled():
            left_s = min(left_s, GRACE_S)
        parallel.timeout = left_s if left_s < math.inf and backend.supports_timeout else None

    with nullcontext() if cancelled is None else _watched(cancelled, bound):
        while True:
            bound()
            try:
                result = next(results)
            except (StopIteration, WaitedInVain):
                return
            yield result


CANCEL_POLL_S = 0.1
GRACE_S = 1.0
"""Time in which processes that are at work may end by themselves, once all is cancelled."""


@contextmanager
def _watched(happened: Callable[[], bool], act: Callable[[], None]) -> Iterator[None]:
    """Act once something has happened, in a thread that looks ten times a second."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(CANCEL_POLL_S):
            if happened():
                act()
                return

    thread = threading.Thread(target=watch, name="placeopt-cancel", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _uninterruptible() -> Iterator[None]:
    """Block Ctrl-C, also for processes that are started meanwhile."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it, as joblib would, lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interruptible(task: Callable[[T], R], item: T) -> R:
    """Run a task with Ctrl-C unblocked, so that it ends the task."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        return task(item)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
