"""Errors of documents in words: path inside the file, value, what was expected."""

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from placeopt.errors import BadInput, Fault
from placeopt.model import FORMAT_VERSION
from placeopt.model.base import Id, Name, Record

R = TypeVar("R", bound=Record)
SHOWN = 20
"""Faults shown of one file; the others are counted."""
MAX_KEYS = 20_000
"""Keys of one object: labels of a node, GPUs of an assignment."""

_RELATIVE_PATH = re.compile(r'^((?:[a-z_]\w*)(?:\.[a-z_]\w*|\[\d+\]|\["[^"]*"\])*): (.*)$', re.DOTALL)
_PATTERNS = {
    constraint.pattern: words
    for annotation, words in (
        (Id, "1 to 253 characters without white space and control characters"),
        (Name, "1 to 253 characters on one line, without control characters"),
    )
    for constraint in get_args(annotation)[1:]
}
_SIGNS = {
    "placements": "a plan",
    "arrivals": "a scenario, jobs that arrive over time",
    "jobs": "an instance, one round",
    "cluster": "an instance, one round",
    "steps": "a patch",
    "cpu_millicores": "a machine",
    "items": "what kubectl prints, which placeopt import kubernetes reads",
}
"""A top-level key that only one kind of document has, the most certain first."""
_HUGE = re.compile(r"\d{4300}")
_TOO_DEEP = "nested too deeply; no document of placeopt is deeper than 12 levels"
_WORDS = {
    "int_type": "a whole number, without quotes, fraction or unit",
    "int_from_float": "a whole number, without fraction",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a text in quotes",
    "string_unicode": "text that is valid Unicode",
    "string_too_short": "a text that is not empty",
    "model_type": "an object {...}",
    "dict_type": "an object {...}",
    "tuple_type": "an array [...]",
    "missing": "it, but it is missing",
}


def path_text(path: Iterable[str | int]) -> str:
    """Write a path as ``jobs[3].node_selector["a b"]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[A-Za-z_]\w*", step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step)}]"
    return text


def value_text(value: object) -> str:
    """Write a value as JSON, shortened to fit a line."""
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)}" if value else "an empty array"
    text = json.dumps(value[:60] if isinstance(value, str) else value, default=repr)
    return text if len(text) <= 62 else f"{text[:58]} ..."


def shortened(value: object, length: int = 80) -> str:
    """Return the ``repr`` of a value, cut to ``length`` characters."""
    text = repr(value)
    return text if len(text) <= length else f"{text[: length - 3]}..."


def bad_input(source: str, faults: Sequence[Fault], count: int, *, least: bool = False) -> BadInput:
    """Return one error for the faults of a file: the first `SHOWN` and their number (``least``: there may be more)."""
    faults = faults[:SHOWN]
    more = f", the first {SHOWN} are" if count > SHOWN else ""
    lines = [f"{source}: {'at least ' * least}{count} faults{more}:", *map(str, faults)]
    error = BadInput(f"{source}: {faults[0]}" if count == 1 else "\n  ".join(lines))
    error.faults = tuple(faults)
    return error


def syntax_fault(error: ValueError | RecursionError, text: str, source: str) -> BadInput:
    """Return the error for text that is not JSON, with the position."""
    if isinstance(error, RecursionError):
        return BadInput(f"{source}: {_TOO_DEEP}")
    if not text.strip():
        return BadInput(f"{source}: empty, expected a JSON object")
    if not isinstance(error, json.JSONDecodeError):
        digits = _HUGE.search(text)  # Python refuses to convert it
        line = text.count("\n", 0, digits.start()) + 1 if digits else 1
        return BadInput(f"{source}: line {line}: a number of thousands of digits, expected one in range")
    where = f"line {error.lineno} column {error.colno}"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return BadInput(f"{source}: {where}: the file ends too early: {error.msg}; is it cut off?")
    near = value_text(text[error.pos : error.pos + 20])
    return BadInput(f"{source}: {where}: not JSON: {error.msg}, near {near}")


_TWICE = object()
"""Stands for the values of a key that appears twice in one object."""


def parse_strictly(text: str, source: str) -> Any:
    """
    Return the value of a JSON text.

    Raises `BadInput` for text that is not JSON, objects of more than `MAX_KEYS` keys, keys that appear twice and
    integers of thousands of digits.
    """
    twice = 0

    def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        if len(pairs) > MAX_KEYS:
            raise BadInput(f"{source}: an object of more than {MAX_KEYS:,} keys; expected fewer")
        found = dict(pairs)
        if len(found) < len(pairs) and twice <= SHOWN:
            twice += 1
            found |= {key: _TWICE for key, count in Counter(key for key, _ in pairs).items() if count > 1}
        return found

    try:
        document = json.loads(text, object_pairs_hook=fields)
    except (ValueError, RecursionError) as error:
        raise syntax_fault(error, text, source) from None
    if twice:
        faults = list(islice(_keys_twice(document), SHOWN + 1))
        raise bad_input(source, faults, len(faults), least=len(faults) > SHOWN)
    return document


def _keys_twice(document: Any) -> Iterator[Fault]:
    left: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while left:
        path, value = left.pop()
        if value is _TWICE:
            yield Fault(path_text(path), "the key appears twice; which one counts is not defined")
        elif isinstance(value, dict | list):
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            left += reversed(
                [((*path, step), one) for step, one in inner if one is _TWICE or isinstance(one, dict | list)]
            )


def make_record(kind: type[R], where: str, /, **fields: object) -> R:
    """Return a record; raises `BadInput` that names ``where`` if the model refuses it."""
    try:
        return kind(**fields)
    except ValidationError as error:
        raise validation_fault(kind, error, where) from None


def validation_fault(kind: type[Record], error: ValidationError, source: str) -> BadInput:
    """Return one `BadInput` for what the model refuses."""
    errors = error.errors(include_url=False)
    for fault in errors:
        if fault["loc"] == ("document",) and fault["type"] == "literal_error":
            return bad_input(source, [_fault(kind, fault)], 1)
        if fault["loc"] == ("format_version",) and fault["type"] != "extra_forbidden":
            version = f"this version of placeopt reads {FORMAT_VERSION}; was the file written by another one?"
            return bad_input(source, [Fault("format_version", f"{value_text(fault['input'])}, {version}")], 1)
    unknown = {fault["loc"][0] for fault in errors if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1}
    for sign, given in _SIGNS.items():
        if sign in unknown:
            return bad_input(source, [Fault(sign, f"this looks like {given}, expected {_called(kind)}")], 1)
    # A list with a bad element also counts as too short: pydantic drops the element first.
    bad = {fault["loc"][:end] for fault in errors for end in range(len(fault["loc"]))}
    errors = [fault for fault in errors if fault["type"] != "too_short" or fault["loc"] not in bad]
    return bad_input(source, [_fault(kind, fault) for fault in errors[:SHOWN]], len(errors))


def _called(kind: type[Record]) -> str:
    word = "scheduling policy" if kind.__name__ == "Scheduling" else kind.__name__.lower()
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _fault(kind: type[Record], fault: Mapping[str, Any]) -> Fault:
    loc: tuple[str | int, ...] = fault["loc"]
    context: Mapping[str, Any] = fault.get("ctx", {})
    if loc and loc[-1] == "[key]":
        return Fault(path_text(loc[:-1]), f"the key {value_text(fault['input'])}, expected {expectation(fault)}")
    path = path_text(loc)
    if fault["type"] == "union_tag_invalid":  # pydantic names the key with quotes around
        tag = path_text((*loc, context["discriminator"].strip("'")))
        expected = context["expected_tags"].replace("'", "")
        return Fault(tag, f"{value_text(context['tag'])}, expected one of {expected}")
    if fault["type"] == "value_error":
        message = str(context.get("error", fault["msg"]))
        relative = _RELATIVE_PATH.match(message)
        if relative:
            return Fault(f"{path}.{relative[1]}" if path else relative[1], relative[2])
        return Fault(path, message)
    if fault["type"] == "missing":
        return Fault(path, "is missing")
    if fault["type"] == "extra_forbidden":
        return Fault(path, f"unknown field{_suggestion(kind, loc)}")
    return Fault(path, f"{value_text(fault['input'])}, expected {expectation(fault)}")


def expectation(fault: Mapping[str, Any]) -> str:
    """Return in words what a field expects, from the error of pydantic."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "greater_than_equal":
        return f"at least {context['ge']}"
    if kind == "less_than_equal":
        return f"at most {context['le']}"
    if kind in ("too_long", "too_short"):
        bound = "at most" if kind == "too_long" else "at least"
        count = context.get("max_length", context.get("min_length"))
        return f"{bound} {count} {'entry' if count == 1 else 'entries'}"
    if kind == "string_too_long":
        return f"at most {context['max_length']} characters"
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(context["pattern"], f"text that matches {context['pattern']}")
    return str(fault["msg"]).removeprefix("Input should be ")


def _suggestion(kind: type[Record], loc: tuple[str | int, ...]) -> str:
    """Return a hint with the closest field name, or with all names."""
    record: type[Record] | None = kind
    for step in loc[:-1]:
        if isinstance(step, str) and record is not None:
            record = _record_in(_fields(record).get(step))
    if record is None:
        return ""
    close = difflib.get_close_matches(str(loc[-1]), _fields(record), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(_fields(record))}"


def _fields(record: type[Record]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in record.model_fields.items()}


def _record_in(annotation: Any) -> type[Record] | None:
    """Return the record type inside an annotation such as ``tuple[Annotated[Record, ...], ...] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return annotation
    for inner in get_args(annotation):
        record = _record_in(inner)
        if record is not None:
            return record
    return None
