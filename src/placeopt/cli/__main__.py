"""
``placeopt`` and ``python -m placeopt.cli``.

Loading the modules takes half a second, in which people press Ctrl-C too. A KeyboardInterrupt raised then shows where
Python was, or is lost in a callback of the import system or of an extension module. So ``main`` first of all installs
a handler that ends the process at once while modules load, whenever that is, and raises KeyboardInterrupt otherwise;
one that is lost all the same, in the callback of a weak reference say, is raised again. Before the handler nothing is
imported that the interpreter has not loaded by itself.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType

INTERRUPTED = 130
MESSAGE = b"error: interrupted before there was anything to write\n"
SHOW_CURSOR = b"\x1b[?25h"
"""A live line of progress hides it, and modules load while there is one."""
AGAIN_S = 0.01
"""Until a lost KeyboardInterrupt is raised again: a callback is over by then."""


def main() -> None:
    """Run the command line of this process and leave with its exit code; 130 at Ctrl-C, whatever the moment."""
    try:
        sys.unraisablehook = _again
        _handle_sigint(_interrupted)
        code = _run()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
        _handle_sigint(_leave)  # all is done and written; what is left takes its modules apart
    except KeyboardInterrupt:
        _leave()
    sys.exit(code)


def _run() -> int:
    started = time.monotonic() - time.process_time()  # the processor time so far is a bound on what Python's start took
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.stderr.write(f"error: the command line needs {error.name}; pip install 'placeopt[cli]'\n")
        return 2
    from placeopt.cli.run import run

    return run(sys.argv[1:], started=started)


def _handle_sigint(handler: object) -> None:
    """Install a handler where Ctrl-C would interrupt: not where the shell has it ignored, as for ``command &``."""
    import _signal  # type: ignore[import-not-found]  # built in; `signal` around it takes 5 ms to load

    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, handler)
        _signal.signal(_signal.SIGALRM, handler)  # see `_again`


def _again(lost: UnraisableHookArgs) -> None:
    """Raise a KeyboardInterrupt again that nothing could catch: it came in a callback or in ``__del__``."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    import _signal

    _signal.setitimer(_signal.ITIMER_REAL, AGAIN_S)


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT: leave at once while a module loads, else raise."""
    del number
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _leave()
        frame = frame.f_back
    raise KeyboardInterrupt


def _leave(*_: object) -> None:
    """End the process, past all that could hold it up. Solver processes leave when their pipe closes."""
    try:
        os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + MESSAGE)
    finally:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
