"""The exit codes, and how an error becomes one."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit code of the process. Fixed: scripts rely on the numbers."""

    DONE = 0
    """Done as asked."""
    NO = 1
    """The answer is no: violations found, or something is wrong with the installation."""
    USAGE = 2
    """
    The command line: unknown option, missing argument, value out of range, a name that is not known: of a method,
    policy, solver, set, level, GPU model, machine type, domain, queue.
    """
    BAD_INPUT = 3
    """A file: missing, malformed, out of range, a reference to nothing, not writable; a job that it does not have."""
    NOTHING_PLACED = 4
    """Jobs were waiting and none of them was placed."""
    INTERNAL = 5
    """A fault of placeopt itself."""
    INTERRUPTED = 130
    """Ctrl-C; the best plan was written."""
    TERMINATED = 143
    """SIGTERM; the best plan was written."""


class UsageError(Exception):
    """An argument that the parser accepts and the command refuses; exit code 2."""
