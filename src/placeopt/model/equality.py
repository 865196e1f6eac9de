"""
Equality of many pairs of records at once.

Comparing pydantic's records one by one takes some microseconds for each record inside; here the fields of all of them
are compared column by column, in loops of C, and an object that many records share is looked at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import chain, compress, repeat
from operator import and_, attrgetter, eq, itemgetter, mul, not_
from typing import Any, TypeVar, get_args

from placeopt.model.base import Record

_fields = attrgetter("__dict__")
WIDE = frozenset({"nodes_allowed"})
"""Fields that may hold the names of all nodes; jobs share them."""
R = TypeVar("R", bound=Record)


def equal_records(
    kind: type[Record], before: Sequence[Record], after: Sequence[Record], ignored: Collection[str] = frozenset()
) -> list[bool]:
    """Return for each pair of records of a kind whether they agree in all fields but the ``ignored`` ones."""
    plain, nested = _kinds(kind)
    names = [name for name in plain if name not in ignored and name not in WIDE]
    left, right = list(map(_fields, before)), list(map(_fields, after))
    equal = [True] * len(left)
    if names:
        values = itemgetter(*names)  # of one name, its value; of several, a tuple
        equal = list(map(eq, map(values, left), map(values, right)))
    for name in WIDE.intersection(plain).difference(ignored):
        value = itemgetter(name)
        equal = list(map(and_, equal, equal_values(list(map(value, left)), list(map(value, right)))))
    for name, inner in nested.items():
        if name not in ignored:
            value = itemgetter(name)
            equal = list(map(and_, equal, _equal_inside(inner, list(map(value, left)), list(map(value, right)))))
    return equal


@cache
def _kinds(kind: type[Record]) -> tuple[tuple[str, ...], dict[str, type[Record]]]:
    """Return the fields of a record that hold no records, and those that do, with the kind inside."""
    inside = {name: record for name, field in kind.model_fields.items() if (record := _record_in(field.annotation))}
    return tuple(name for name in kind.model_fields if name not in inside), inside


def _record_in(annotation: Any) -> type[Record] | None:
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return annotation
    return next((record for inner in get_args(annotation) if (record := _record_in(inner)) is not None), None)


def keep_equal(kind: type[R], before: Iterable[R], after: Sequence[R], key: str) -> tuple[R, ...]:
    """Return the records ``after``, each of them replaced by the equal one ``before`` with the same ``key``, if any."""
    name = attrgetter(key)
    known = {name(record): record for record in before}
    places = [i for i, record in enumerate(after) if name(record) in known]
    old, new = [known[name(after[i])] for i in places], [after[i] for i in places]
    kept = list(after)
    for i, record, equal in zip(places, old, equal_records(kind, old, new), strict=True):
        if equal:
            kept[i] = record
    return tuple(kept)


def equal_values(left: Sequence[Any], right: Sequence[Any]) -> list[bool]:
    """Return for each pair of values whether they are equal; values that many pairs share are compared once."""
    pairs = list(zip(map(id, left), map(id, right), strict=True))
    numbers = dict(zip(pairs, range(len(pairs)), strict=True))
    known = {pair: left[i] == right[i] for pair, i in numbers.items()}
    return list(map(known.__getitem__, pairs))


def _equal_inside(kind: type[Record], left: list[Any], right: list[Any]) -> list[bool]:
    """Return for each pair of records, tuples of records, or None, whether it is equal."""
    pairs = list(zip(map(id, left), map(id, right), strict=True))
    numbers = dict(zip(pairs, range(len(pairs)), strict=True))
    some = list(numbers.values())
    if 2 * len(some) > len(pairs):
        return _equal_each(kind, left, right)
    known = dict(zip(numbers, _equal_each(kind, [left[i] for i in some], [right[i] for i in some]), strict=True))
    return list(map(known.__getitem__, pairs))


def _equal_each(kind: type[Record], left: list[Any], right: list[Any]) -> list[bool]:
    left, right = list(map(_tuple, left)), list(map(_tuple, right))
    sizes = list(map(len, left))
    equal = list(map(eq, sizes, map(len, right)))
    if not all(equal):
        left, right, sizes = ([*map(mul, part, equal)] for part in (left, right, sizes))  # compares nothing there
    owners = chain.from_iterable(map(repeat, range(len(left)), sizes))
    inside = equal_records(kind, list(chain.from_iterable(left)), list(chain.from_iterable(right)))
    for i in compress(owners, map(not_, inside)):
        equal[i] = False
    return equal


def _tuple(value: Any) -> tuple[Any, ...]:
    """Return a tuple of records, of one, or of none, for what a field holds."""
    return value if type(value) is tuple else () if value is None else (value,)
