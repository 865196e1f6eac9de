"""What costs count, by how much, and by what parameters: maps by the names under which costs are registered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from placeopt.model.base import HashedDict, Record, Thousandths
from placeopt.rooms import load_rooms

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class CostKind:
    """What policies can say of a cost; ``parameters`` is the record of what it alone depends on, with defaults."""

    weight: int = 0
    """In thousandths, where a policy states none."""
    beside_the_sum: bool = False
    """Whether the weight is no part of the sum of the others."""
    parameters: type[Record] | None = None


COST_KINDS = {
    "communication": CostKind(400),
    "interference": CostKind(300),
    "fragmentation": CostKind(300),
    "resource": CostKind(),
    "prefer": CostKind(300, beside_the_sum=True),
    "relations": CostKind(300, beside_the_sum=True),
}
"""By name: placeopt's own, then what `placeopt.terms.costs.register_cost` adds."""


def _kinds() -> dict[str, CostKind]:
    """Return the costs that are registered, in an order that does not depend on what was loaded first."""

    def place(name: str) -> tuple[bool, bool, str]:
        kind = COST_KINDS[name]
        return kind.beside_the_sum, not kind.weight, "" if kind.weight else name

    return {name: COST_KINDS[name] for name in sorted(COST_KINDS, key=place)}


def _kind(name: str) -> CostKind:
    if name not in COST_KINDS:
        load_rooms()
    if name not in COST_KINDS:
        raise ValueError(f"{name}: no cost is registered under this name; expected one of {', '.join(_kinds())}")
    return COST_KINDS[name]


class Weights(HashedDict[int]):
    """
    Weights of the cost level in thousandths, by the name of the cost, summing to 1000 (SC'17 eq. 1).

    What is left out has its default. A cost of weight 0 is not computed. All 0 switches the cost level off. ``prefer``
    and ``relations`` count only where jobs prefer levels or have soft relations, and are no part of the sum.
    """

    def __init__(self, /, **stated: int) -> None:
        for name in _NUMBERS.validate_python(stated, strict=True):
            _kind(name)
        super().__init__((n, w) for n, kind in _kinds().items() if (w := stated.get(n, kind.weight)) or kind.weight)
        total = sum(self._summed())
        if total not in (0, 1000):
            raise ValueError(f"sum to {total}, expected 1000 (or all 0 for no cost level)")

    def __missing__(self, name: str) -> int:
        """Return 0: what is not here does not count."""
        return 0

    @property
    def any_cost(self) -> bool:
        """Whether there is a cost level at all."""
        return any(self._summed())

    def _summed(self) -> list[int]:
        return [weight for name, weight in self.items() if not _kind(name).beside_the_sum]

    def _dump(self, info: core_schema.SerializationInfo) -> dict[str, int]:
        return {n: w for n, w in self.items() if not info.exclude_defaults or w != _kind(n).weight}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a map of integers."""
        del source
        dump = core_schema.plain_serializer_function_ser_schema(cls._dump, info_arg=True)
        numbers = handler.generate_schema(dict[str, Thousandths])
        return core_schema.no_info_after_validator_function(lambda stated: cls(**stated), numbers, serialization=dump)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON Schema, with the names of registered costs."""
        load_rooms()
        return {**handler(schema), "propertyNames": {"enum": list(_kinds())}}


_NUMBERS = TypeAdapter(dict[str, Thousandths])


class CostParameters(HashedDict[Record]):
    """Parameters of costs that have any, by the name of the cost; what is left out is at its defaults."""

    def of(self, name: str, kind: type[R]) -> R:
        """Return the parameters of a cost, whose record of them is ``kind``."""
        found = self.get(name)
        return found if isinstance(found, kind) else kind()

    @classmethod
    def _read(cls, stated: Mapping[str, Any]) -> CostParameters:
        found: dict[str, Record] = {}
        for name in sorted(stated):
            kind = _kind(name).parameters
            if kind is None:
                raise ValueError(f"{name}: this cost has no parameters")
            form: Any = GenericAlias(dict, (str, kind))  # so that a fault names the cost
            found |= TypeAdapter(form).validate_python({name: stated[name]})
        return cls((name, one) for name, one in found.items() if one != type(one)())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a map of records, each as its cost states."""
        del source
        return core_schema.no_info_after_validator_function(cls._read, handler.generate_schema(dict[str, Any]))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON Schema of the records of registered costs."""
        load_rooms()
        records = {name: kind.parameters.__pydantic_core_schema__ for name, kind in _kinds().items() if kind.parameters}
        properties = {name: handler.resolve_ref_schema(handler(record)) for name, record in records.items()}
        return {**handler(schema), "additionalProperties": False, "properties": properties}
