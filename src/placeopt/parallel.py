"""Independent tasks in parallel, through joblib: threads, processes, dask, ray, or a backend of the caller."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, TypeVar

from placeopt.errors import BadArgument, BadInput, Unsupported

T = TypeVar("T")
R = TypeVar("R")
HERE = "here"
PLACES = (HERE, "dask", "ray")
CONNECT_S = 30.0
"""Time within which a remote cluster must answer."""


@contextmanager
def workers(where: str = HERE, jobs: int = 1) -> Iterator[int | None]:
    """
    Start the workers that a word names, and yield the ``jobs`` argument of `run_parallel`; a context manager.

    Parameters
    ----------
    where
        ``here``: threads or processes of this machine. ``dask``, ``ray``: one of theirs with ``jobs`` workers, started
        on this machine and ended afterwards. ``dask:ADDRESS``, ``ray:ADDRESS``: the one that runs there, with all its
        workers; files are named by their paths, so both sides must see the same ones.

    Raises
    ------
    BadInput
        If ``where`` is not such a word, or the address does not answer.
    Unsupported
        If the package that it needs is not installed.
    """
    name, _, address = where.partition(":")
    if name not in PLACES or (name == HERE and address) or where.endswith(":"):
        raise BadArgument(f"on: {where!r}, expected here, dask, ray, dask:ADDRESS or ray:ADDRESS")
    if name == HERE:
        yield jobs
        return
    with ExitStack() as stack:
        start = _start_dask if name == "dask" else _start_ray
        try:
            start(stack, address, jobs)
        except ImportError as error:
            raise Unsupported(
                f"{name} is not installed ({error}); pip install 'placeopt[{name}]', or stay here: processes of this "
                "machine need nothing more"
            ) from None
        except (OSError, RuntimeError, ValueError) as error:
            what = f"no answer from {address!r}" if address else "could not be started"
            raise BadInput(f"{where}: {what}: {error or type(error).__name__}") from None
        from joblib import parallel_config

        stack.enter_context(parallel_config(backend=name, n_jobs=-1 if address else jobs))
        yield None


def _start_dask(stack: ExitStack, address: str, jobs: int) -> None:
    """Connect to dask; joblib finds the client by itself."""
    from distributed import Client

    options: dict[str, Any] = {"timeout": CONNECT_S}
    if not address:
        options |= {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": None}
    stack.enter_context(Client(address or None, **options))


def _start_ray(stack: ExitStack, address: str, jobs: int) -> None:
    """Connect to ray, and register it with joblib."""
    import ray
    from ray.util.joblib import register_ray

    if not ray.is_initialized():
        _check_answers(address)
        options: dict[str, Any] = {"address": address} if address else {"num_cpus": jobs, "include_dashboard": False}
        ray.init(log_to_driver=False, logging_level="ERROR", **options)
        stack.callback(ray.shutdown)
    register_ray()


def _check_answers(address: str) -> None:
    """Raise `OSError` if the address does not answer: ray would retry for minutes. Names such as ``auto`` are ray's."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if host and port.isdecimal():
        import socket

        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()


def run_parallel(
    task: Callable[[T], R],
    items: Sequence[T],
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
        The function and its arguments. With processes, they and the results must be picklable.
    jobs
        Number of parallel tasks; 1: sequentially, in this thread. None: as ``joblib.parallel_config`` states, by
        default one.
    prefer
        Threads for tasks that only wait for other processes. ``joblib.parallel_config(backend=...)`` overrides it;
        `workers` does that for dask and ray.
    cancelled
        Checked between results; true ends the iteration. Started tasks are waited for, and their results are dropped.
    ahead
        Whether each process is sent its next task while it works on one, for tasks that take long to pack.
    due
        Moment of ``time.monotonic()`` that ends the iteration: no task begins later, and processes at work are ended,
        or still starting. Not supported by dask and ray.
    """
    if jobs == 1 or len(items) < 2:
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
    items: Sequence[T],
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
        for first in range(0, len(items), 4 * width):
            if cancelled is not None and cancelled():
                return
            calls = [delayed(task)(item) for item in items[first : first + 4 * width]]
            yield from Parallel(n_jobs=jobs, prefer=prefer)(calls)
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
    is_bounded = due < math.inf and backend.supports_timeout
    while True:
        parallel.timeout = max(0.0, due - time.monotonic()) if is_bounded else None  # of the wait that begins here
        try:
            result = next(results)
        except (StopIteration, WaitedInVain):
            return
        yield result


CANCEL_POLL_S = 0.1


@contextmanager
def mark_of(event: threading.Event | None) -> Iterator[Path | None]:
    """
    Yield the path of a file that is made once ``event`` is set; None without an event.

    Processes of this machine look for it (`event_of`), since an event reaches no other process, and of the signals that
    set one Ctrl-C alone goes to all processes.
    """
    if event is None:
        yield None
        return
    from tempfile import TemporaryDirectory  # only here: every command loads this module

    over = threading.Event()
    with TemporaryDirectory(prefix="placeopt-") as folder:
        mark = Path(folder) / "cancelled"

        def watch() -> None:
            while not over.is_set():
                if event.wait(CANCEL_POLL_S):
                    mark.touch()
                    return

        thread = threading.Thread(target=watch, name="placeopt-cancel", daemon=True)
        thread.start()
        try:
            yield mark
        finally:
            over.set()
            thread.join()


@contextmanager
def event_of(mark: Path | None) -> Iterator[threading.Event | None]:
    """Yield an event that is set once the file ``mark`` is there; None without one. Undoes `mark_of` in a process."""
    if mark is None:
        yield None
        return
    event, over = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(CANCEL_POLL_S):
            if mark.exists():
                event.set()
                return

    thread = threading.Thread(target=watch, name="placeopt-cancel", daemon=True)
    thread.start()
    try:
        yield event
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
