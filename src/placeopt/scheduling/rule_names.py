"""The names that a field of a policy accepts: built-in ones and registered ones."""

from collections.abc import Callable
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import CoreSchema, PydanticKnownError, core_schema


class RuleNames:
    """
    The names that one field of a policy accepts; the annotation of that field.

    The JSON Schema lists the built-in names alone, since a registered name is valid in one process only.

    ``field``: Name of the field, for messages. ``built_in``: A ``Literal`` of the built-in names.
    """

    def __init__(self, field: str, built_in: object) -> None:
        self.field = field
        self.built_in: tuple[str, ...] = get_args(built_in)
        self.registered: dict[str, None] = {}

    @property
    def all(self) -> tuple[str, ...]:
        """The built-in names, then the registered ones."""
        return (*self.built_in, *self.registered)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Return the schema of the ``Literal``, which lets registered names pass."""
        del source, handler
        literal = core_schema.literal_schema(list(self.built_in))
        text = core_schema.simple_ser_schema("str")
        return core_schema.no_info_wrap_validator_function(self._validate, literal, serialization=text)

    def _validate(self, value: Any, built_in: Callable[[Any], str]) -> str:
        if isinstance(value, str) and value in self.registered:
            return value
        try:
            return built_in(value)
        except ValidationError:
            if not self.registered:
                raise
            *first, last = map(repr, self.all)
            raise PydanticKnownError("literal_error", {"expected": f"{', '.join(first)} or {last}"}) from None
