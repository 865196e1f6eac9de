"""
Every error that placeopt raises on purpose.

A message states what is wrong, where, what was expected and how to correct it. The command line turns the class into
an exit code; no user error raises another exception.
"""

import json
from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def printable(text: str) -> str:
    """
    Return text that is safe to print: what cannot be seen, or moves what can, is written as JSON escapes it.

    That is all that Unicode calls not printable: control characters (NUL, escape, C1), marks of writing direction,
    zero-width and unusual blanks, line separators. Plain text comes back as it is; so do line breaks.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


class PlaceoptError(Exception):
    """Base of all errors raised by placeopt. A message quotes files and arguments, so it is made printable."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(printable(arg) if isinstance(arg, str) else arg for arg in args))


class Fault(NamedTuple):
    """A fault of a document: the path inside it, empty for the whole, and what is wrong there."""

    where: str
    what: str

    def __str__(self) -> str:
        """Return both as a message has them."""
        return f"{self.where or 'document'}: {self.what}"


class BadInput(PlaceoptError):
    """
    A file or argument is not what it should be: malformed, out of range, or a reference to nothing.

    Attributes
    ----------
    faults
        The faults of a document that the message shows; empty where it is about something else.
    """

    faults: tuple[Fault, ...] = ()


class BadArgument(BadInput):
    """
    An argument that is not a file: an unknown name, or text of another form than expected; lists what is known.

    A job that the instance lacks is a plain `BadInput`: which jobs there are is a question to the file.
    """


class Unsupported(PlaceoptError):
    """The request is well formed, but this version, formulation or solver cannot take it; names one that can."""


class StaleSnapshot(PlaceoptError):
    """
    A plan was to be committed that was made for a state of the cluster that has changed since; nothing was committed.

    Attributes
    ----------
    planned, revision
        The revision that the plan is for, and the present one.
    jobs, nodes
        Ids of the jobs and nodes that changed in between, in the order of the changes.
    """

    def __init__(
        self, planned: int, revision: int, jobs: tuple[str, ...], nodes: tuple[str, ...], changes: str
    ) -> None:
        super().__init__(planned, revision, jobs, nodes, changes)
        self.planned, self.revision, self.jobs, self.nodes = planned, revision, jobs, nodes

    def __str__(self) -> str:
        """Return the message."""
        planned, revision, *_, changes = self.args
        return f"the plan is for revision {planned}, the cluster is at {revision}; since then: {changes}; place again"


class EngineInUse(PlaceoptError):
    """
    An engine was called while another call of it was at work; the second call did nothing.

    Attributes
    ----------
    called, running
        Names of the refused call and of the one at work.
    """

    def __init__(self, called: str, running: str) -> None:
        super().__init__(called, running)
        self.called, self.running = called, running

    def __str__(self) -> str:
        """Return the message."""
        return (
            f"engine: {self.called} was called while {self.running} is at work; an engine takes one call at a time: "
            "wait for the first one, set its event 'cancel', or use an engine for each thread"
        )


class SolverFault(PlaceoptError):
    """A solver returned something that contradicts itself; its answer is thrown away."""


class OutOfTime(PlaceoptError):
    """The deadline passed while a model was being built. Stages catch it; it never propagates from the public API."""


class InternalFault(PlaceoptError):
    """
    placeopt contradicts itself, for instance a plan that the referee refuses. Always a bug.

    An exception that nothing in placeopt raises on purpose leaves public calls as this one, and is its ``__cause__``.
    """


class CallerRaised(BaseException):
    """
    Carries an exception of the caller's own ``on_progress`` through placeopt, past all that catches exceptions.

    ``only_documented`` raises ``error`` itself at the end; this class never propagates from the public API.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def only_documented(call: Callable[P, R]) -> Callable[P, R]:
    """
    Decorate a public call: an undocumented exception becomes ``InternalFault``, with the cause chained.

    ``BadInput``, ``Unsupported``, ``StaleSnapshot``, ``InternalFault`` and ``MemoryError`` pass, as does what the
    caller's ``on_progress`` raises.
    """

    @wraps(call)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except (BadInput, Unsupported, StaleSnapshot, InternalFault, MemoryError):
            raise
        except CallerRaised as carried:
            theirs = carried.error
        except Exception as error:
            raise InternalFault(f"{call.__qualname__}: {type(error).__name__}: {error}") from error
        raise theirs

    return wrapped
