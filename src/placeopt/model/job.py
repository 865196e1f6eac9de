"""Jobs: what is asked for, in which ways it may run, and what it is worth."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Annotated, Any, Literal, NamedTuple, Required, Self

from pydantic import Field, ModelWrapValidatorHandler, TypeAdapter, ValidationError, model_validator, with_config
from typing_extensions import TypedDict

from placeopt.model.base import (
    MAX_VALUE,
    Count,
    HashedDict,
    Id,
    Labels,
    LongName,
    Milliseconds,
    Name,
    Record,
    Thousandths,
    Weight,
    trusted,
)
from placeopt.model.conditions import ANY_NODE, NodeConditions, Relation
from placeopt.model.group import MAX_GROUPS, MAX_WORKERS, Group

JobKind = Literal["training", "inference", "modelling", "cpu"]
MAX_PRIORITY = 1_000_000
MAX_DEPTH = 16
"""Groups above a leaf of an option, itself included."""
MAX_EDGES = 100_000
"""A ring of as many workers as a job may have, or all pairs of 447 workers; all pairs alike need no edges."""


class Option(Group):
    """
    One way to run a job: a tree of groups of workers, mostly a single leaf, and what running it is worth.

    It runs whole or not at all, but for what may be missing: a leaf with ``workers_min`` is elastic and runs with any
    number from there to ``workers``, rank 0 being the chief that is never taken (DynamoML 3.3); an ``optional`` group
    may be missing. ``value`` is that of all workers; each missing one takes its leaf's ``value_per_worker`` away.
    """

    value: Annotated[int, Field(ge=0, le=MAX_VALUE * MAX_WORKERS)] = 1
    """Value of the job in this option with all its workers."""
    utility_thousandths: Thousandths | None = None
    """Predicted utility; below the job's minimum the option has no value and is not taken."""
    run_time_ms: Milliseconds | None = None
    """Expected run time alone, its GPUs as close together as they can be."""
    rate_milli: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Requests that the option serves a second, in thousandths."""
    latency_ms: Milliseconds | None = None
    """Time of one answer."""
    cost_milli: Annotated[int, Field(ge=0, le=10**9)] = 0
    """Cost of the option wherever it runs (GENIE eq. 10); enters the cost level by ``weights.resource``."""

    def worth(self, workers: int) -> int:
        """Value of an option of one leaf with so many workers."""
        return self.value - (self.workers - workers) * self.value_per_worker

    def valued(self, value: int) -> Self:
        """Return the option worth that much with any number of its workers."""
        groups = tuple(_without_value(group) for group in self.groups)
        return self.model_copy(update={"value": value, "value_per_worker": 0, "groups": groups})

    @property
    def most_workers(self) -> int:
        """Number of workers of all leaves together."""
        return sum(leaf.workers for leaf in self.leaves)

    @property
    def gpu_milli(self) -> int:
        """GPU share that all workers request, in thousandths of a GPU."""
        return sum(leaf.workers * leaf.demand.gpus * leaf.demand.gpu_milli for leaf in self.leaves)

    @property
    def least_gpu_milli(self) -> int:
        """GPU share that the fewest workers request, in thousandths of a GPU."""
        return _least_gpu_milli(self)

    @model_validator(mode="after")
    def _tree(self) -> Self:
        if self.optional:
            raise ValueError("optional: an option is the root of its tree; a job that may wait needs no word")
        missing = _most_missing(self, optional=False)
        if missing > self.value:
            raise ValueError(
                f"value: {self.value}, but missing workers take up to {missing} away; expected at least that"
            )
        if not self.groups:
            if self.value_per_worker and self.workers_min is None:
                raise ValueError("value_per_worker: goes with 'workers_min'; a gang has one number of workers")
            return self
        if self.most_workers > MAX_WORKERS:
            raise ValueError(f"groups: {self.most_workers} workers together; expected at most {MAX_WORKERS}")
        names: set[str] = set()
        for path, group in self.walk():
            if not path:
                continue
            if (depth := path.count(".")) > MAX_DEPTH:
                raise ValueError(f"groups: {group.id!r} is {depth} groups deep; expected at most {MAX_DEPTH}")
            if group.id in names:
                raise ValueError(f"groups: {group.id!r} appears twice; ids of groups are unique in a tree")
            names.add(group.id)
        if len(names) > MAX_GROUPS:
            raise ValueError(f"groups: {len(names)} in one tree; expected at most {MAX_GROUPS}")
        return self


def _without_value(group: Group) -> Group:
    groups = tuple(_without_value(part) for part in group.groups)
    return group.model_copy(update={"value_per_worker": 0, "groups": groups})


def _least_gpu_milli(group: Group) -> int:
    if group.groups:
        return sum(_least_gpu_milli(part) for part in group.groups if not part.optional)
    return group.fewest * group.demand.gpus * group.demand.gpu_milli


def _most_missing(group: Group, *, optional: bool) -> int:
    """Return the value that the workers take away which may be missing."""
    optional = optional or group.optional
    if group.groups:
        return sum(_most_missing(part, optional=optional) for part in group.groups)
    return (group.workers if optional else group.workers - group.fewest) * group.value_per_worker


class Origin(Record):
    """A worker or a node in the system that it comes from. Nothing of it decides where a job may run."""

    name: LongName
    """Its name there; of a pod ``NAMESPACE/NAME``, of a job what its owner chose, perhaps for several."""
    id: LongName | None = None
    """Identifier that no other one ever has: the job id of Slurm, the UID of Kubernetes."""


class JobOrigin(Origin):
    """A job in the system that it comes from."""

    workers: tuple[Origin, ...] = ()
    """Its workers by rank, where that system has names for them; in Kubernetes its pods."""

    @property
    def names(self) -> frozenset[str]:
        """All names and identifiers, of the workers too."""
        told = [text for one in (self, *self.workers) for text in (one.name, one.id)]
        return frozenset(text for text in told if text is not None)


class Edge(Record):
    """Traffic between two workers."""

    ranks: tuple[Count, Count]
    """Ranks of the two workers."""
    weight: Weight
    """Traffic weight of each pair of GPUs of the two workers."""


class Communication(Record):
    """
    Traffic weights of a job (SC'17 section 5.1: 4 tiny batch .. 1 big batch).

    ``weight`` holds for every pair of the job's GPUs (data parallel). With ``edges``, pairs of GPUs of two different
    workers weigh what the edge says, 0 where there is none, and ``weight`` holds inside a worker only.
    """

    weight: Weight = 0
    """Traffic weight of every pair of the job's GPUs; with ``edges``, of pairs inside one worker."""
    edges: Annotated[tuple[Edge, ...], Field(max_length=MAX_EDGES)] = ()
    """Traffic between pairs of workers; empty: every pair of GPUs has ``weight``."""
    spread_slowdown_thousandths: Thousandths | None = None
    """Excess run time with its GPUs as far apart as a machine allows; left out, the policy's (``postpone``)."""


class Job(Record):
    """A job, waiting or running. It runs in at most one of its options."""

    id: Id
    """Unique name of the job."""
    kind: JobKind = "training"
    """Kind of work; a job of kind ``cpu`` has no GPUs."""
    user: Name | None = None
    """Owner of the job."""
    queue: Id | None = None
    """Queue of the policy whose quota the job uses."""
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Orders queues, and jobs where ``policy.priorities`` is strict; what a job is worth stands in its options."""
    preempts: bool = True
    """Whether running jobs may be changed for it, where ``policy.priorities`` is strict."""
    arrival_ms: Milliseconds = 0
    """Time of submission."""
    deadline_ms: Milliseconds | None = None
    """Time by which the job should end; null: none."""
    expected_completion_ms: Milliseconds | None = None
    """ECT, an absolute time (GENIE 5.2)."""
    options: Annotated[tuple[Option, ...], Field(min_length=1, max_length=256)] = (Option(),)
    """Alternative ways to run the job; exactly one is chosen."""
    communication: Communication = Communication()
    """Traffic between the job's GPUs."""
    profile: Name | None = None
    """Its row in the instance's interference profiles."""
    utility_min_thousandths: Thousandths | None = None
    """Below it the job waits: options that state less are not taken, places that give less by ``policy.postpone``."""
    conditions: NodeConditions = ANY_NODE
    """What the job asks of its nodes, whichever option it runs in."""
    labels: Labels = Field(default_factory=HashedDict)
    """By which relations of jobs select it."""
    relations: Annotated[tuple[Relation, ...], Field(max_length=100)] = ()
    """Near which jobs, or apart from which, its workers are."""
    conditions_unread: bool = False
    """
    Whether some of its conditions on nodes could not be read. ``conditions.nodes_allowed`` then names nodes that are
    known to do; whether others would do, too, is not known.
    """
    origin: JobOrigin | None = None
    """The job in the system that it comes from."""

    @property
    def gpu_milli(self) -> int:
        """GPU share that the job requests in its largest option, in thousandths of a GPU."""
        return max(option.gpu_milli for option in self.options)

    def option(self, option_id: Id) -> Option:
        """Return the option of that id; raises ``KeyError`` where there is none."""
        for option in self.options:
            if option.id == option_id:
                return option
        raise KeyError(option_id)

    def with_conditions(self, **fields: Any) -> Self:
        """Return the job with other values of fields of its conditions; raises ``ValidationError`` for wrong ones."""
        return self.model_copy(update={"conditions": NodeConditions(**{**dict(self.conditions), **fields})})

    def is_below_minimum(self, option: Option) -> bool:
        """Return whether an option states a utility below the least that the job asks for: it is not taken."""
        least, utility = self.utility_min_thousandths, option.utility_thousandths
        return least is not None and utility is not None and utility < least

    def may_preempt(self, now_ms: int, wait_min_ms: int) -> bool:
        """Return whether running jobs may be changed for it now, where a job has to wait for ``wait_min_ms`` first."""
        return self.preempts and now_ms - self.arrival_ms >= wait_min_ms

    @model_validator(mode="wrap")
    @classmethod
    def _consistent(cls, given: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(given, cls):
            return given  # it was looked at when it was made
        known = templates.get()
        if known is not None and isinstance(given, dict) and TEMPLATE in given:
            return cls._from_template(given, known)
        job = handler(given)
        job._check_options()
        return job

    @classmethod
    def _from_template(cls, entry: dict[str, Any], known: "Templates") -> Self:
        """Return the job that an entry with a template states."""
        name = entry[TEMPLATE]
        shared = known.fields.get(name) if isinstance(name, str) else None
        if shared is None:
            there = ", ".join(list(known.fields)[:20]) or "none"
            raise ValueError(f"{TEMPLATE}: no template {name!r}; there are: {there}")
        for field in entry if not entry.keys() <= _STATED else ():
            if field not in _STATED:
                why = "the template states it" if field in Job.model_fields else "unknown field"
                raise ValueError(f"{field}: {why}; beside 'template' a job has {', '.join(OWN)}")
        own = _own_fields(entry)
        del own[TEMPLATE]
        job: Self = known.blanks.pop() if known.blanks else trusted(cls, {})
        _fill(job, shared, own)
        return job

    def _check_options(self) -> None:
        seen: set[str] = set()
        for i, option in enumerate(self.options):
            if option.id in seen:
                raise ValueError(f"options[{i}].id: {option.id!r} appears twice; ids of options are unique in a job")
            seen.add(option.id)
            gpus = max(leaf.demand.gpus for leaf in option.leaves)
            if self.kind == "cpu" and gpus:
                raise ValueError(f"options[{i}].demand.gpus: {gpus} in a job of kind 'cpu'; use 0, or another kind")
        if self.communication.edges:
            self._check_edges()

    def _check_edges(self) -> None:
        most = max(option.most_workers for option in self.options)
        pairs: set[tuple[int, int]] = set()
        for i, edge in enumerate(self.communication.edges):
            a, b = sorted(edge.ranks)
            if a == b or b >= most:
                raise ValueError(
                    f"communication.edges[{i}].ranks: {list(edge.ranks)} must be two different ranks below {most}"
                )
            if (a, b) in pairs:
                raise ValueError(f"communication.edges[{i}].ranks: workers {a} and {b} have an edge already")
            pairs.add((a, b))


RECORDS = ("options", "communication", "conditions", "relations")
"""Fields that are records or lists: jobs that are alike hold the same objects, by which they are told apart quickly."""
OWN = ("id", "user", "arrival_ms", "deadline_ms", "expected_completion_ms", "origin")
"""Fields that a job of a template states itself."""
TEMPLATE, TEMPLATES = "template", "templates"


class Templates(NamedTuple):
    """Of a document that is validated."""

    fields: Mapping[str, dict[str, Any]]
    """Name -> fields of the job that is as the template says."""
    blanks: list[Any]
    """A job without values for each one of the document."""


templates: ContextVar[Templates | None] = ContextVar("templates", default=None)
"""Those of the document that is being validated, if it has any."""
_own: Any = {name: Job.__annotations__[name] for name in OWN if name != "id"}
# A typed dict, with names that mypy cannot see: a record made for each job and taken apart takes three times as long.
_Own = TypedDict("_Own", {TEMPLATE: Required[str], "id": Required[Id], **_own}, total=False)  # type: ignore[misc]
_strict_own: Any = with_config(Record.model_config)(_Own)
_own_fields = TypeAdapter[Any](_strict_own).validator.validate_python
_own_fields_of_all = TypeAdapter[Any](list[_strict_own]).validator.validate_python
_STATED = frozenset((TEMPLATE, *OWN))
MANY = 500
"""Entries that are looked at together: enough that the call costs nothing, fewer than make Python look for garbage."""


def filled(entries: Sequence[Any], known: Templates) -> list[Any]:
    """
    Return the entries of a document, those with a template as jobs.

    Where one of many is wrong, these stay as they are: the check of each entry alone names the fault.
    """
    whole = list(entries)
    stated = [i for i, entry in enumerate(entries) if isinstance(entry, dict) and TEMPLATE in entry]
    for first in range(0, len(stated), MANY):
        part = stated[first : first + MANY]
        with suppress(ValidationError, KeyError):
            owns = _own_fields_of_all([entries[i] for i in part])
            shared = [known.fields[own.pop(TEMPLATE)] for own in owns]
            for i, common, own in zip(part, shared, owns, strict=True):
                whole[i] = known.blanks.pop()
                _fill(whole[i], common, own)
    return whole


def _fill(job: Job, shared: dict[str, Any], own: dict[str, Any]) -> None:
    fields = job.__dict__
    fields.update(shared)
    fields.update(own)
