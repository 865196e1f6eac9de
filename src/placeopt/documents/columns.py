"""
Instances from columns: for callers with 100,000 jobs in arrays.

Rows that differ only in plain fields of the job (id, user, arrival and the like) share one validated set of options, so
the strict checks of the model are paid per distinct row and not per job.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from placeopt.arguments import checked
from placeopt.documents.faults import expectation, shortened, validation_fault
from placeopt.errors import BadInput
from placeopt.model.base import Record
from placeopt.model.cluster import Cluster, Domain, Node
from placeopt.model.group import Demand
from placeopt.model.instance import Instance, Slowdown
from placeopt.model.job import Job, Option
from placeopt.model.machine import Machine
from placeopt.model.placement import Running
from placeopt.model.policy import Policy
from placeopt.model.templates import check_column, copies

Column = Sequence[Any] | npt.NDArray[Any] | str | int | bool | Record | None
"""One value a row, or one scalar for all rows."""

R = TypeVar("R", bound=Record)
_Nest = Callable[[dict[str, Any]], dict[str, Any]]


@checked
def instance_from_columns(
    cluster: Cluster,
    jobs: Mapping[str, Column],
    *,
    name: str = "unnamed",
    note: str = "",
    policy: Policy | None = None,
    running: Iterable[Running] = (),
    now_ms: int = 0,
    slowdowns: Iterable[Slowdown] = (),
) -> Instance:
    """
    Make the instance that reading the same jobs from JSON would give.

    Parameters
    ----------
    cluster
        The cluster, for instance from ``cluster_from_columns``.
    jobs
        Column name -> one value a row (a sequence or a one-dimensional array), or a scalar for all rows. ``id`` must be
        there, as a sequence; what is left out has the model's default. Names are those of the JSON fields, flat:

        - of the job: ``id, kind, user, queue, priority, arrival_ms, deadline_ms, expected_completion_ms, profile,
          utility_min_thousandths, node_selector, nodes_allowed, tolerations``;
        - of its communication: ``communication_weight``, or ``communication`` with ``Communication`` objects;
        - of its only option: the fields of ``Option`` but ``id`` (``workers, single_node, splits, value, ...``), and
          those of its demand (``gpus, gpu_milli, gpu_models, cpu_millicores, memory_mib, ...``);
        - or ``options``: tuples of ``Option`` objects, for jobs with several, in place of the option's and demand's
          columns. Rows that hold the same tuple share it.

        Fields that are lists in JSON take one tuple a row, ``node_selector`` one dict a row, ``splits`` a tuple of
        ``Split`` objects; a list, tuple or array is always a column, never a scalar.
    name, note, policy, running, now_ms, slowdowns
        As in ``Instance``; the policy defaults to ``Policy()``.

    Returns
    -------
    Instance
        Equal to the one that JSON gives, its cross-references checked. Jobs with equal options share one object.

    Raises
    ------
    BadInput
        If a column is unknown, missing or of another length, or a value is refused; names column, row (from 0) and
        value. Also if ids repeat, or a reference leads nowhere.

    Notes
    -----
    100,000 jobs of some hundred distinct rows take about half a second of one core, a third of it for the
    cross-references; a column of distinct values among those of the option (say, another ``value`` for each job) makes
    as many distinct rows, at some 30 microseconds each.
    """
    made = _records(Job, "jobs", jobs, _OF_JOB, _job_document)
    try:
        return Instance(
            name=name,
            now_ms=now_ms,
            note=note,
            cluster=cluster,
            jobs=tuple(made),
            running=tuple(running),
            slowdowns=tuple(slowdowns),
            policy=policy if policy is not None else Policy(),
        )
    except ValidationError as error:
        raise validation_fault(Instance, error, "instance") from error


@checked
def cluster_from_columns(
    machines: Iterable[Machine], nodes: Mapping[str, Column], *, domains: Iterable[Domain] = ()
) -> Cluster:
    """
    Make a cluster from its machine types, its domains (parents first) and columns of nodes.

    Parameters
    ----------
    machines, domains
        As in ``Cluster``.
    nodes
        Columns ``id`` and ``machine``, both needed, and ``domain, labels, taints, drained, price_milli_per_hour``, with
        the rules of ``instance_from_columns``: ``labels`` takes one dict a row, ``taints`` one tuple a row.

    Returns
    -------
    Cluster
        Its references checked.

    Raises
    ------
    BadInput
        As for ``instance_from_columns``.
    """
    made = _records(Node, "nodes", nodes, _OF_NODE, dict)
    try:
        return Cluster(machines=tuple(machines), domains=tuple(domains), nodes=tuple(made))
    except ValidationError as error:
        raise validation_fault(Cluster, error, "cluster") from error


_DEMAND = tuple(Demand.model_fields)
_OPTION = tuple(field for field in Option.model_fields if field not in ("id", "demand"))
_OF_JOB = (*Job.model_fields, "communication_weight", *_OPTION, *_DEMAND)
_OF_NODE = tuple(field for field in Node.model_fields if field != "origin")
_PLAIN = (
    *("id", "user", "queue", "priority", "arrival_ms", "deadline_ms", "expected_completion_ms", "profile"),
    *("utility_min_thousandths", "machine", "domain", "price_milli_per_hour"),
)
"""Columns that touch no other field, so they are validated by the column."""


def _job_document(row: dict[str, Any]) -> dict[str, Any]:
    """Nest a flat row as JSON does."""
    document = dict(row)
    demand = {field: document.pop(field) for field in _DEMAND if field in document}
    option = {field: document.pop(field) for field in _OPTION if field in document}
    if demand:
        option["demand"] = demand
    if option:
        document["options"] = (option,)
    if "communication_weight" in document:
        document["communication"] = {"weight": document.pop("communication_weight")}
    return document


def _records(kind: type[R], table: str, given: Mapping[str, Column], known: tuple[str, ...], nest: _Nest) -> list[R]:
    """Rows as records: plain columns validated whole, the rest once per distinct row."""
    _check_names(kind, table, given, known)
    columns = {column: _values(table, column, value) for column, value in given.items() if _is_column(value)}
    scalars = {column: _plain_type(value) for column, value in given.items() if not _is_column(value)}
    for column, values in columns.items():
        if len(values) != len(columns["id"]):
            raise BadInput(f"{table}: column {column!r}: {len(values)} rows, expected {len(columns['id'])} as in 'id'")
    plain = {column: values for column, values in columns.items() if column in _PLAIN}
    for column, values in plain.items():
        _check_plain(kind, table, column, values)
    keys = [_keys(values) for column, values in columns.items() if column not in plain]
    states: dict[tuple[Any, ...], dict[str, Any]] = {}
    state_of_row = []
    for row, key in enumerate(zip(*keys, strict=True) if keys else [()] * len(columns["id"])):
        state = states.get(key)
        if state is None:
            flat = {column: values[row] for column, values in columns.items()}
            state = states[key] = _validated(kind, table, row, scalars | flat, nest).__dict__
        state_of_row.append(state)
    return copies(kind, state_of_row, plain)


def _validated(kind: type[R], table: str, row: int, flat: dict[str, Any], nest: _Nest) -> R:
    try:
        return kind.model_validate(nest(flat))
    except ValidationError as error:
        path, message = _first(error)
        if path == ("communication", "weight"):
            path = ("communication_weight",)
        column = next((str(part) for part in reversed(path) if part in flat), None)
        where = f"row {row}" if column is None else f"column {column!r}, row {row}: {shortened(flat[column])}"
        raise BadInput(f"{table}: {where}: {message}") from error


def _check_names(kind: type[Record], table: str, given: Mapping[str, Column], known: tuple[str, ...]) -> None:
    for column in given:
        if column not in known:
            raise BadInput(f"{table}: column {column!r}: unknown, expected one of {', '.join(known)}")
    for column, field in kind.model_fields.items():
        if field.is_required() and column not in given:
            raise BadInput(f"{table}: column {column!r}: missing, expected one value a row")
    if not _is_column(given["id"]):
        raise BadInput(f"{table}: column 'id': {shortened(given['id'])}, expected a sequence, one name a row")
    flat = [column for column in given if column in (*_OPTION, *_DEMAND)]
    if "options" in given and flat:
        raise BadInput(f"jobs: column {flat[0]!r}: goes into the Option objects of column 'options', not beside it")
    if "communication" in given and "communication_weight" in given:
        raise BadInput("jobs: column 'communication_weight': expected either it or 'communication'")


def _is_column(value: Column) -> bool:
    return isinstance(value, np.ndarray | Sequence) and not isinstance(value, str)


_SIMPLE = frozenset({int, str, bool, float, type(None)})


def _values(table: str, column: str, value: Any) -> list[Any]:
    """Make a column a list of plain Python values: no NumPy scalars, tuples in place of lists."""
    if isinstance(value, np.ndarray) and value.ndim != 1:
        raise BadInput(f"{table}: column {column!r}: {value.ndim} dimensions, expected 1")
    values = value.tolist() if isinstance(value, np.ndarray) else list(value)
    return values if _SIMPLE.issuperset(map(type, values)) else [_plain_type(item) for item in values]


def _plain_type(item: Any) -> Any:
    if isinstance(item, np.generic):
        return item.item()
    if isinstance(item, list | tuple | np.ndarray):
        plain = tuple(map(_plain_type, item))
        unchanged = type(item) is tuple and all(map(operator.is_, plain, item))
        return item if unchanged else plain  # the same object, so that rows that share one still do
    return item


def _keys(values: list[Any]) -> list[Any]:
    """Return a key for each row of a column: value and type if it is simple (1 == 1.0 == True), else its identity."""
    kinds = set(map(type, values))
    if len(kinds) < 2 and kinds <= _SIMPLE:
        return values
    return [(item, type(item)) if _is_simple(item) else (id(item), "object") for item in values]


def _is_simple(item: Any) -> bool:
    return type(item) in _SIMPLE or (type(item) is tuple and all(type(part) is str for part in item))


def _check_plain(kind: type[Record], table: str, column: str, values: list[Any]) -> None:
    try:
        check_column(kind, column, values)
    except ValidationError as error:
        path, message = _first(error)
        row = path[0] if path and isinstance(path[0], int) else 0
        raise BadInput(f"{table}: column {column!r}, row {row}: {shortened(values[row])}: {message}") from error


def _first(error: ValidationError) -> tuple[tuple[int | str, ...], str]:
    """Return path and text of the first error; a message with all 100,000 would not help."""
    details = error.errors(include_url=False, include_input=False)[0]
    if details["type"] == "value_error":
        return details["loc"], details["msg"].removeprefix("Value error, ")
    return details["loc"], f"expected {expectation(details)}"
