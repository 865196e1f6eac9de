"""Where an answer comes from: the document asked about and its digest, command, settings, seed, versions and time."""

from __future__ import annotations

import functools
import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from placeopt.environment import versions

if TYPE_CHECKING:
    from placeopt.model import Instance
    from placeopt.simulation.records.scenario import Scenario

KEY = "provenance"
"""Key of an answer in JSON under which it stands."""
MEASURED = ("seconds", "decision_ms", "decision_cpu_s", "kept")
"""Fields of answers, and figures of views, that a second run need not repeat: the answer's digest leaves them out."""
UNSTATED = ("as_json", "quiet")
SHOWN_DIGITS = 12


@dataclass
class _Asked:
    arguments: Sequence[str] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    document: Instance | Scenario | None = None


_asked: ContextVar[_Asked] = ContextVar("asked")


def begin(arguments: Sequence[str]) -> None:
    """Begin a command line."""
    _asked.set(_Asked(arguments))


def recorded(command: Callable[..., int]) -> Callable[..., int]:
    """Return a command that notes the values of its options before it runs."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> int:
        _of_now().settings = {name: value for name, value in options.items() if name not in UNSTATED}
        return command(*arguments, **options)

    return run


def asked_about(document: Instance | Scenario) -> None:
    """Note the instance or scenario that the answer is about, after plan, patches and prices."""
    _of_now().document = document


def _of_now() -> _Asked:
    asked = _asked.get(None)
    if asked is None:
        asked = _Asked()
        _asked.set(asked)
    return asked


def provenance(answer: object) -> dict[str, Any]:
    """
    Return the provenance of an answer, as plain data.

    ``answer``: plain data, of which ``answer_digest`` is the SHA-256 without times: the same question under the same
    versions has the same one, where the answer does not depend on the clock.
    """
    asked = _of_now()
    document = asked.document
    text = json.dumps(_repeatable(answer), sort_keys=True)
    return {
        "instance": None if document is None else {"name": document.name, "digest": document.digest},
        "command": shlex.join(["placeopt", *asked.arguments]),
        "settings": {name: value for name, value in sorted(asked.settings.items()) if _is_plain(value)},
        "seed": asked.settings.get("seed"),
        "versions": versions(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "answer_digest": hashlib.sha256(text.encode()).hexdigest(),
    }


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float | bool)


def _repeatable(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _repeatable(inner) for key, inner in value.items() if key not in MEASURED}
    if isinstance(value, list | tuple):
        return [
            _repeatable(inner) for inner in value if not (isinstance(inner, Mapping) and inner.get("name") in MEASURED)
        ]
    return value


def provenance_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return a provenance as two lines of text: what and when, and the command."""
    about = facts["instance"]
    words = [] if about is None else [f"{about['name']}, digest {about['digest'][:SHOWN_DIGITS]}"]
    words += [] if facts["seed"] is None else [f"seed {facts['seed']}"]
    words += [
        f"placeopt {facts['versions']['placeopt']}",
        facts["time"],
        f"answer {facts['answer_digest'][:SHOWN_DIGITS]}",
    ]
    return ["; ".join(words), facts["command"]]
