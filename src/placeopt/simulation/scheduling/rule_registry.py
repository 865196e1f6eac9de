"""Scheduling rules by name: those that come with placeopt, and those that Python code registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from placeopt.errors import BadArgument
from placeopt.model.scheduling import RuleNames

R = TypeVar("R")


class RuleRegistry(Generic[R]):
    """
    The rules that one field of a policy can name.

    Parameters
    ----------
    names
        The names that the field accepts.
    built_in
        Name -> rule, for every built-in name.
    """

    def __init__(self, names: RuleNames, built_in: Mapping[str, R]) -> None:
        self._names = names
        self._rules = dict(built_in)

    def register(self, name: str, rule: R) -> R:
        """
        Let policies name a rule from now on, in this process; return the rule.

        Raises
        ------
        BadArgument
            If there is a rule of that name.
        """
        if name in self._rules:
            raise BadArgument(f"{self._names.field}: there is a rule {name!r} already; choose another name")
        self._rules[name] = rule
        self._names.registered[name] = None
        return rule

    def __getitem__(self, name: str) -> R:
        """
        Return the rule of a name.

        Raises
        ------
        BadArgument
            If there is none; lists the known ones.
        """
        if name not in self._rules:
            known = ", ".join(self._rules)
            raise BadArgument(f"{self._names.field}: no rule {name!r} is registered in this process; known: {known}")
        return self._rules[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names, built-in ones first."""
        return iter(self._rules)
