"""Running one command line: every error becomes one message on standard error and an exit code."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import typer

from placeopt import __version__
from placeopt.cli.app import GROUPS, build_app, first_words
from placeopt.cli.output import ExitCode, UsageError, discard, write_error
from placeopt.cli.provenance import begin
from placeopt.errors import BadArgument, BadInput, InternalFault, SolverFault, Unsupported

if TYPE_CHECKING:
    from placeopt.cli.importers.importer import Importer

DEBUG = "PLACEOPT_DEBUG"
"""Set to anything, this variable shows the traceback of an internal fault."""
COMPLETE = "_PLACEOPT_COMPLETE"
"""Shells set this variable to ask for completions of the words in one of `COMPLETED`; `source_bash` prints a script."""
COMPLETED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")

# typer has had its own copy of click since 0.26; its bad parameter is a usage error of either.
_ParserError: type[Any] = typer.BadParameter.__mro__[1]


def run(arguments: Sequence[str], *, started: float | None = None) -> int:
    """
    Run a command line and return its exit code.

    Parameters
    ----------
    arguments
        Without the program's name. Never raises, whatever stands in them or in the files that they name.
    started
        When the command began, on ``time.monotonic()``; time limits that include reading count from there. Left out:
        now.

    Returns
    -------
    int
        Exit code, as in ``placeopt --help``.
    """
    begin(arguments)
    try:
        return _invoke(list(arguments), time.monotonic() if started is None else started)
    except (UsageError, BadArgument, _ParserError) as error:
        text = _usage(error, arguments)
        end = "" if text.endswith("?") else ";"
        return _fail(ExitCode.USAGE, f"{text}{end} see '{_command(error, arguments)} --help'")
    except (BadInput, Unsupported) as error:
        return _fail(ExitCode.BAD_INPUT, str(error))
    except OSError as error:
        return _fail(ExitCode.BAD_INPUT, ": ".join(str(part) for part in (error.filename, error.strerror) if part))
    except MemoryError:
        return _fail(ExitCode.BAD_INPUT, "out of memory; the input is too large for this machine or its limit")
    except KeyboardInterrupt:
        return _fail(ExitCode.INTERRUPTED, "interrupted before there was anything to write")
    except SystemExit:  # how rich ends where the pipe that takes the help is closed
        return ExitCode.DONE
    except (InternalFault, SolverFault, Exception) as error:  # noqa: BLE001 - the last resort, and it is reported
        return _internal(error)


def _invoke(arguments: list[str], started: float) -> int:
    if os.environ.get(COMPLETE):
        return _complete()
    command = _parser(*_needed(arguments))
    try:
        with command.make_context("placeopt", arguments, obj=started) as context:
            code = command.invoke(context)
    except typer.Exit as end:
        return int(end.exit_code)
    return int(code) if isinstance(code, int) else ExitCode.DONE


def _complete() -> int:
    """Print what a shell asks for: its script, or the completions of a command line."""
    from typer._completion_classes import completion_init  # where typer defines it; no public module has it
    from typer.completion import shell_complete

    completion_init()
    words = next((os.environ[name] for name in COMPLETED if os.environ.get(name)), "").split()[1:]
    command = _parser(*_needed(words or ["--help"]))
    try:
        return int(shell_complete(command, {}, "placeopt", COMPLETE, os.environ[COMPLETE]))
    except BrokenPipeError:
        discard(sys.stdout)
        return ExitCode.DONE


def _needed(arguments: list[str]) -> tuple[tuple[Importer, ...], tuple[str, str] | None]:
    """Return the importers that the parser of a command line may need, and the words that name its command."""
    words = first_words(arguments)
    if words is not None and words[0] != "import":
        return (), words
    from placeopt.cli.importers.registry import IMPORTERS

    return tuple(IMPORTERS.values()), words


@lru_cache(maxsize=100)
def _parser(importers: tuple[Importer, ...], words: tuple[str, str] | None) -> Any:
    """Return the parser; building it takes longer than some commands."""
    return typer.main.get_command(build_app(importers, words))


def _usage(error: Exception, arguments: Sequence[str]) -> str:
    """Return the message on one line and without a full stop, the parser's in lower case."""
    if isinstance(error, _ParserError):
        text = _on_one_line(error.format_message())
        return text[:1].lower() + text[1:]
    text = _on_one_line(str(error))
    return _with_option(text, arguments) if isinstance(error, BadArgument) else text


def _on_one_line(message: str) -> str:
    return " ".join(message.split()).rstrip(".")


def _with_option(text: str, arguments: Sequence[str]) -> str:
    """
    Return a message of the library with the option of the command in place of the function's argument.

    ``vary: ...`` becomes ``--vary: ...``. An argument may end in its unit: ``cpu_millicores: ...`` becomes
    ``--cpu: ...``. A message that does not begin with an argument stays as it is.
    """
    command = _parser(*_needed(list(arguments)))
    for word in filter(None, first_words(arguments) or ()):
        command = command.commands[word]
    name, colon, rest = text.partition(":")
    argument = f"--{name.replace('_', '-')}"
    options = [option for parameter in command.params for option in parameter.opts]
    named = [option for option in options if argument == option or argument.startswith(f"{option}-")]
    return max(named, key=len) + colon + rest if named else text


def _command(error: Exception, arguments: Sequence[str]) -> str:
    """Return the command whose help explains a usage error."""
    context = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    return " ".join(["placeopt", *arguments[: 2 if arguments[0] in GROUPS else 1]])


def _internal(error: BaseException) -> int:
    if os.environ.get(DEBUG):
        write_error(traceback.format_exc().rstrip())
    hint = "" if os.environ.get(DEBUG) else f" ({DEBUG}=1 shows where)"
    message = str(error) if isinstance(error, InternalFault) else f"{type(error).__name__}: {error}"
    return _fail(
        ExitCode.INTERNAL,
        f"internal fault: {message}; this is a fault of placeopt {__version__}: "
        f"please report it with the command and its files{hint}",
    )


def _fail(code: ExitCode, message: str) -> int:
    write_error(f"error: {message}")
    return code
