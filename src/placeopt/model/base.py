"""
The strict base of everything users write and read, and the bounded integer types.

Every quantity is an integer with its unit in the field's name; every record refuses unknown fields,
coerced types and values out of range, and cannot be changed once made. The upper limits are wide
enough for any machine of today and narrow enough that sums over a cluster stay below 2^53.
"""

import re
from collections.abc import Generator, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function


def _as_tuple(value: object) -> object:
    return tuple(value) if type(value) is list else value


def _take_lists(schema: Any) -> None:
    """
    Let the tuples of a schema take lists, in place; nothing else, such as sets, whose order varies.

    They stop at their first wrong element. Records inside are references: each has its own schema.
    """
    if isinstance(schema, list):
        for inner in schema:
            _take_lists(inner)
    elif isinstance(schema, dict):
        if schema.get("type") == "function-before" and schema["function"]["function"] is _as_tuple:
            return  # it takes them already
        for key, inner in schema.items():
            if key != "metadata":
                _take_lists(inner)
        if schema.get("type") == "tuple":
            plain = schema | {"fail_fast": True}  # an error takes kilobytes: none for each of a million elements
            schema.clear()
            schema.update(no_info_before_validator_function(_as_tuple, plain))


class Record(BaseModel):
    """
    A strict, frozen record: wrong types, unknown fields and values out of range are refused.

    ``model_validate`` takes what ``json.loads`` returns: lists stand for tuples, objects for records. Everything else
    is as strict as in a file: ``"1"`` and ``1.0`` are no integers.

    Empty dictionaries are made by ``default_factory``: as a plain default pydantic would deep-copy them, at some 10 %
    of the time to read an instance.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, ser_json_inf_nan="null")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return pydantic's schema with tuples that may be given as lists; their elements stay strict."""
        schema = handler(source)
        _take_lists(handler.resolve_ref_schema(schema))
        return schema

    def __iter__(self) -> Generator[tuple[str, Any], None, None]:
        """Yield field and value, nothing that was computed from them, such as ``digest``."""
        yield from ((name, self.__dict__[name]) for name in type(self).model_fields)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy as pydantic does, but forget what was computed from the old content, such as ``digest``."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(copied).model_fields.keys():
            del copied.__dict__[name]
        return copied


R = TypeVar("R", bound=Record)
V = TypeVar("V")
_SLOTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_set_fields, _set_names, _set_extra, _set_private = (vars(BaseModel)[slot].__set__ for slot in _SLOTS)
"""The class refuses to set an attribute, since a record is frozen once it is made; its slots do not."""
_new = object.__new__


@cache
def _names(kind: type[Record]) -> set[str]:
    return set(kind.model_fields)


def trusted(kind: type[R], fields: dict[str, Any]) -> R:
    """
    Make a record of values that are known to be valid, without looking at them; ``fields`` names every field.

    For records by the hundred thousand that are built from checked integers: an eighth of ``model_construct``'s time,
    which looks up defaults and aliases field by field. The records of a kind share the set of names of their fields,
    which pydantic copies with a record and changes in the copy alone: a set of its own is half a kilobyte.
    """
    record: R = _new(kind)
    _set_fields(record, fields)
    _set_names(record, _names(kind))
    _set_extra(record, None)
    _set_private(record, None)
    return record


_UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Control characters, and marks that end lines or turn the direction of writing: names are printed everywhere."""

Id = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=rf"^[^\s{_UNSEEN}]+$")]
"""Name of a node, job, machine, domain, queue: 1 to 253 characters without white space."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=rf"^[^{_UNSEEN}]+$")]
"""Free text of one line: a GPU model, a user."""

LongName = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=rf"^[^{_UNSEEN}]+$")]
"""A name of another system, such as ``NAMESPACE/NAME`` of a pod; one line."""


def one_line(text: str) -> str:
    """Return a text as names may be: without control characters and marks that end lines."""
    return re.sub(f"[{_UNSEEN}]", " ", text)


LabelValue = Annotated[str, StringConstraints(max_length=253, pattern=rf"^[^{_UNSEEN}]*$")]
"""Value of a label or a taint: one line, which may be empty."""


class HashedDict(dict[str, V]):
    """A dictionary of a record; hashed, as the records that hold it are."""

    def __hash__(self) -> int:  # type: ignore[override]  # records are frozen: nothing changes it once it is made
        """Hash the content, whatever its order."""
        return hash(frozenset(self.items()))


Labels = Annotated[dict[Id, LabelValue], AfterValidator(lambda labels: HashedDict(sorted(labels.items())))]
"""Labels by key; kept in order of the keys, so that the order they were written in does not reach a digest."""


def refuse_repeats(path: str, values: Iterable[object], rule: str) -> None:
    """Raise ValueError at the first value that appears twice; ``path`` has ``[]`` for its index."""
    seen: set[object] = set()
    for i, value in enumerate(values):
        if value in seen:
            raise ValueError(f"{path.replace('[]', f'[{i}]')}: {value!r} appears twice; {rule}")
        seen.add(value)


def _whole_number(version: object) -> object:
    if type(version) is not int:  # 1 == True == 1.0, and a literal goes by equality
        raise ValueError("should be the whole number 2")
    return version


FormatVersion = Annotated[Literal[2], BeforeValidator(_whole_number)]
"""Version of the file formats that this library reads and writes."""

Count = Annotated[int, Field(ge=0, le=1_000_000)]
PositiveCount = Annotated[int, Field(ge=1, le=1_000_000)]
GpuIndex = Annotated[int, Field(ge=0, le=1023)]
Milli = Annotated[int, Field(ge=1, le=1000)]
"""Share of one GPU in thousandths; 1000 is a whole GPU."""

Percent = Annotated[int, Field(ge=0, le=100)]
Thousandths = Annotated[int, Field(ge=0, le=1_000_000)]
Millicores = Annotated[int, Field(ge=0, le=100_000_000)]
MAX_AMOUNT = 1_000_000_000
"""Most of a named resource, and of memory in MiB."""
Mib = Annotated[int, Field(ge=0, le=MAX_AMOUNT)]
Mbps = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Bandwidth in megabytes (10^6 bytes) per second."""

PriceMilli = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Price in thousandths of a currency unit an hour."""


class Amounts(HashedDict[int]):
    """Amounts by name, in the order of the names."""


Resources = Annotated[
    dict[Id, Annotated[int, Field(ge=0, le=MAX_AMOUNT)]],
    AfterValidator(lambda amounts: Amounts(sorted(amounts.items()))),
]
"""Amounts of named resources: integers without a unit of their own, such as licences, ports, devices."""

Revision = Annotated[int, Field(ge=0, le=2**53)]
"""Number of a state of a cluster: one more with every change."""

MAX_MS = 10_000_000_000_000
Milliseconds = Annotated[int, Field(ge=0, le=MAX_MS)]
Weight = Annotated[int, Field(ge=0, le=1_000_000)]
MAX_VALUE = 1_000_000_000
Value = Annotated[int, Field(ge=0, le=MAX_VALUE)]
MAX_NODES = 200_000
MAX_GPUS = 1024
"""GPUs of a node, or of a worker."""
MAX_LEVELS = 64
"""
Levels of domains on one path to the network. Each level costs a look at all nodes in costs, bounds and splits; clusters
have some ten.
"""
MAX_JOBS = 2_000_000
"""
Jobs of a round, running ones included. At this number values (``MAX_VALUE``) sum to 2 x 10^15, and the slowdowns of all
pairs of jobs (``Thousandths``) to 4 x 10^18: above 3 x 10^6 the latter would not fit into 64 bits.
"""
JobCount = Annotated[int, Field(ge=0, le=MAX_JOBS)]
"""Number of jobs of a round."""
