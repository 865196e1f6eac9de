"""Policies and rules by name: those that come with placeopt, and rules that Python code registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Generic, TypeVar

from placeopt.documents.documents import loads
from placeopt.errors import BadArgument
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.rule_names import RuleNames

R = TypeVar("R")


FOLDER = files("placeopt.scheduling") / "policies"


class RuleRegistry(Generic[R]):
    """The rules that one field of a policy can name: ``names`` that the field accepts, and a built-in rule for each."""

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
        """Return the rule of a name; `BadArgument` for an unknown one lists the known ones."""
        if name not in self._rules:
            known = ", ".join(self._rules)
            raise BadArgument(f"{self._names.field}: no rule {name!r} is registered in this process; known: {known}")
        return self._rules[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names, built-in ones first."""
        return iter(self._rules)


def policy_names() -> list[str]:
    """Return the names, sorted."""
    return sorted(entry.name.removesuffix(".json") for entry in FOLDER.iterdir() if entry.name.endswith(".json"))


def named_policy(name: str) -> Scheduling:
    """
    Return a policy by name.

    Parameters
    ----------
    name
        One of `policy_names`.

    Returns
    -------
    Scheduling
        The record of the policy.

    Raises
    ------
    BadInput
        If there is none; lists those that there are.
    """
    names = policy_names()
    if name not in names:
        raise BadArgument(f"policy: no policy {name!r}; known: {', '.join(names)}")
    return loads(Scheduling, (FOLDER / f"{name}.json").read_text(encoding="utf-8"), source=f"policy {name}")
