"""
Instances from columns: for callers with 100,000 jobs in arrays.

Rows that differ only in what jobs of a template state themselves (id, user, times) are jobs of one template, so the
strict checks of the model are paid per distinct row and not per job.
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from placeopt.arguments import checked
from placeopt.documents.faults import expectation, shortened, validation_fault
from placeopt.errors import BadInput
from placeopt.model.base import Record
from placeopt.model.cluster import Cluster, Domain, Node
from placeopt.model.conditions import NodeConditions
from placeopt.model.group import Demand
from placeopt.model.instance import Instance, Slowdown
from placeopt.model.job import OWN, TEMPLATE, TEMPLATES, Job, Option
from placeopt.model.machine import Machine
from placeopt.model.placement import Running
from placeopt.model.policy import Policy

Column = Sequence[Any] | npt.NDArray[Any] | str | int | bool | Record | None
"""One value a row, or one scalar for all rows."""

_DEMAND = tuple(Demand.model_fields)
_OPTION = tuple(field for field in Option.model_fields if field not in ("id", "demand", "conditions"))
_CONDITIONS = tuple(NodeConditions.model_fields)
_OF_JOB = (*Job.model_fields, "communication_weight", *_CONDITIONS, *_OPTION, *_DEMAND)
_OF_NODE = tuple(field for field in Node.model_fields if field != "origin")


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
          utility_min_thousandths, labels, relations``, and of its conditions ``node_selector, nodes_allowed, ...``;
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
        Equal to the one that JSON gives, its cross-references checked. Rows alike share their options.

    Raises
    ------
    BadInput
        If a column is unknown, missing or of another length, or a value is refused; names column, row (from 0) and
        value. Also if ids repeat, or a reference leads nowhere.

    Notes
    -----
    100,000 jobs of some hundred distinct rows take less than a second of one core, a quarter of it for the
    cross-references; a column of distinct values beside id, user and times (say, another ``value`` for each job) makes
    as many distinct rows, at some 30 microseconds each.
    """
    columns = _columns("jobs", jobs, Job, _OF_JOB)
    flat = [column for column in jobs if column in (*_OPTION, *_DEMAND)]
    if "options" in jobs and flat:
        raise BadInput(f"jobs: column {flat[0]!r}: goes into the Option objects of column 'options', not beside it")
    if "communication" in jobs and "communication_weight" in jobs:
        raise BadInput("jobs: column 'communication_weight': expected either it or 'communication'")
    own = {column: columns.pop(column) for column in OWN if column in columns}
    keys = zip(*map(_keys, columns.values()), strict=True) if columns else [()] * len(own["id"])
    first: dict[tuple[Any, ...], int] = {}  # the first row of each template, which is called by it
    of_row = [first.setdefault(key, row) for row, key in enumerate(keys)]
    document = {
        "name": name,
        "now_ms": now_ms,
        "note": note,
        "cluster": cluster,
        TEMPLATES: {
            str(row): _nested({column: values[row] for column, values in columns.items()}) for row in first.values()
        },
        "jobs": [
            dict(zip(own, cells, strict=True)) | {TEMPLATE: str(row)}
            for row, cells in zip(of_row, zip(*own.values(), strict=True), strict=True)
        ],
        "running": tuple(running),
        "slowdowns": tuple(slowdowns),
        "policy": policy if policy is not None else Policy(),
    }
    try:
        return Instance.model_validate(document)
    except ValidationError as error:
        raise _fault(error, "jobs", jobs) or validation_fault(Instance, error, "instance") from None


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
    columns = _columns("nodes", nodes, Node, _OF_NODE)
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    try:
        return Cluster.model_validate({"machines": tuple(machines), "domains": tuple(domains), "nodes": rows})
    except ValidationError as error:
        raise _fault(error, "nodes", nodes) or validation_fault(Cluster, error, "cluster") from None


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return a flat row as JSON has it."""
    demand, option = ({field: flat[field] for field in fields if field in flat} for fields in (_DEMAND, _OPTION))
    row = {field: value for field, value in flat.items() if field in Job.model_fields}
    if asks := {field: flat[field] for field in _CONDITIONS if field in flat}:
        row["conditions"] = asks
    if demand:
        option["demand"] = demand
    if option:
        row["options"] = (option,)
    if "communication_weight" in flat:
        row["communication"] = {"weight": flat["communication_weight"]}
    return row


def _columns(table: str, given: Mapping[str, Column], kind: type[Record], known: Sequence[str]) -> dict[str, list[Any]]:
    """Return a plain value of each column for each row."""
    for column in given:
        if column not in known:
            raise BadInput(f"{table}: column {column!r}: unknown, expected one of {', '.join(known)}")
    for column, field in kind.model_fields.items():
        if field.is_required() and column not in given:
            raise BadInput(f"{table}: column {column!r}: missing, expected one value a row")
    if not _is_column(given["id"]):
        raise BadInput(f"{table}: column 'id': {shortened(given['id'])}, expected a sequence, one name a row")
    columns, size = {}, len(given["id"])
    for column, value in given.items():
        columns[column] = _values(table, column, value) if _is_column(value) else [_plain_type(value)] * size
        if len(columns[column]) != size:
            raise BadInput(f"{table}: column {column!r}: {len(columns[column])} rows, expected {size} as in 'id'")
    return columns


def _fault(error: ValidationError, table: str, given: Mapping[str, Column]) -> BadInput | None:
    """Return the first error by column and row; None where it is not about the rows."""
    fault = error.errors(include_url=False)[0]
    if len(fault["loc"]) < 2 or fault["loc"][0] not in (table, TEMPLATES):
        return None
    _, row, *path = ("communication_weight" if part == "weight" else part for part in fault["loc"])
    column = next((part for part in reversed(path) if part in given), None)
    where = f"row {row}" if column is None else f"column {column!r}, row {row}: {shortened(fault['input'])}"
    if fault["type"] == "value_error":
        return BadInput(f"{table}: {where}: {fault['msg'].removeprefix('Value error, ')}")
    return BadInput(f"{table}: {where}: expected {expectation(fault)}")


def _is_column(value: Column) -> TypeGuard[Sequence[Any] | npt.NDArray[Any]]:
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
