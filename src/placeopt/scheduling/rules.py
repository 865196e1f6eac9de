"""Rules of a policy: each is named, with its parameters beside it, and registered under its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from placeopt.errors import BadArgument
from placeopt.model.base import Id, Record
from placeopt.scheduling.systems import load_systems

if TYPE_CHECKING:
    from placeopt.scheduling.division import Division
    from placeopt.scheduling.elastic import ElasticRule
    from placeopt.scheduling.occupancy import Held, Occupancy
    from placeopt.scheduling.policy import Scheduling
    from placeopt.scheduling.preemption_policy import PreemptionRule
    from placeopt.scheduling.queue_orders import QueueOrder
    from placeopt.scheduling.resource_estimator import CoreFinder, OptionChoice
    from placeopt.scheduling.setting import Setting
    from placeopt.scheduling.watching import Monitor

R = TypeVar("R")


class Rule(Record):
    """
    A rule of a policy, by name. Rules with parameters are records of their own, which have these beside the name.
    """

    rule: Id
    """Name under which it is registered."""

    @property
    def reads_run_times(self) -> bool:
        """Whether it reads the run times that jobs state, so that those without are named in a warning."""
        return False

    def check(self, scheduling: Scheduling) -> None:
        """Raise ``ValueError`` where the rule does not go with the rest of a policy, which names it."""
        del scheduling


@dataclass(frozen=True)
class _Entry(Generic[R]):
    implementation: R
    parameters: type[Rule]


class RuleRegistry(Generic[R]):
    """
    The rules that one field of a policy can name; the annotation of that field.

    ``field``: Name of the field, for messages. ``home``: Module that registers those that come with the core.
    """

    def __init__(self, field: str, home: str) -> None:
        self.field, self._home = field, home
        self._entries: dict[str, _Entry[R]] = {}

    def register(self, name: str, rule: R, parameters: type[Rule] = Rule) -> R:
        """
        Let policies name a rule from now on, in this process; return the rule.

        Parameters
        ----------
        name
            What policies call it.
        rule
            What the field asks for; see the registry.
        parameters
            Record of its parameters.

        Returns
        -------
        R
            The rule.

        Raises
        ------
        BadArgument
            If there is a rule of that name.
        """
        import_module(self._home)  # its own rules come first, so that no other takes a name of theirs
        if name in self._entries:
            raise BadArgument(f"{self.field}: there is a rule {name!r} already; choose another name")
        self._entries[name] = _Entry(rule, parameters)
        return rule

    def __getitem__(self, rule: Rule | str) -> R:
        """Return what a rule of a policy, or a name, stands for; `BadArgument` for an unknown one lists the others."""
        name = rule if isinstance(rule, str) else rule.rule
        entry = self._entry(name)
        if entry is None:
            raise BadArgument(f"{self.field}: no rule {name!r} is registered in this process; known: {', '.join(self)}")
        return entry.implementation

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        self._load_all()
        return iter(tuple(self._entries))

    def _load_all(self) -> None:
        import_module(self._home)
        load_systems()

    def _entry(self, name: str) -> _Entry[R] | None:
        if name not in self._entries:
            self._load_all()
        return self._entries.get(name)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Return the schema of a rule whose name says which parameters it has."""
        del source, handler
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        """Return the JSON Schema of the rules that are registered."""
        del schema
        names: dict[type[Rule], list[str]] = {}
        for name in self:
            names.setdefault(self._entries[name].parameters, []).append(name)
        shapes = []
        for parameters, mine in names.items():
            shape = handler.resolve_ref_schema(handler(parameters.__pydantic_core_schema__))
            named = {"enum": mine, "title": "Rule", "type": "string"}
            shapes.append({**shape, "properties": {**shape["properties"], "rule": named}})
        return {"anyOf": shapes}

    def _validate(self, value: Any) -> Rule:
        name = value.rule if isinstance(value, Rule) else value.get("rule") if isinstance(value, Mapping) else None
        if not isinstance(name, str):
            raise PydanticCustomError(
                "rule", 'expected a rule: a record with its name under "rule", and its parameters beside it'
            )
        entry = self._entry(name)
        if entry is None:
            known = ", ".join(map(repr, self))
            raise PydanticCustomError("rule", "no rule {name}; expected {known}", {"name": repr(name), "known": known})
        return entry.parameters.model_validate(value if isinstance(value, Mapping) else dict(value))


ROOM = "placeopt.scheduling"
QUEUE_ORDERS: RuleRegistry[QueueOrder] = RuleRegistry("order", f"{ROOM}.queue_orders")
PREEMPTION_RULES: RuleRegistry[PreemptionRule] = RuleRegistry("preempts", f"{ROOM}.preemption_rules")
DIVISIONS: RuleRegistry[Callable[[Setting, Any], Division]] = RuleRegistry("divides", f"{ROOM}.division")
ELASTIC_RULES: RuleRegistry[ElasticRule] = RuleRegistry("elastic", f"{ROOM}.elastic")
WATCHES: RuleRegistry[Callable[[Any, Occupancy[Held]], Monitor]] = RuleRegistry("watch", f"{ROOM}.watching")
OPTION_CHOICES: RuleRegistry[OptionChoice | None] = RuleRegistry("choice", f"{ROOM}.resource_estimator")
CORES: RuleRegistry[Callable[[Setting], CoreFinder] | None] = RuleRegistry("cores", f"{ROOM}.resource_estimator")
BANDWIDTH: RuleRegistry[None] = RuleRegistry("bandwidth", f"{ROOM}.host_rules")
REPLICAS: RuleRegistry[None] = RuleRegistry("replicas", f"{ROOM}.host_rules")
