"""
Measured utilisation and pairs that others publish, as tables of ``placeopt predict``.

Lucid (ASPLOS'23): 66 configurations of 15 models alone on an RTX 3090, and 1,388 pairs of them. GPUMemNet: thousands of
made networks. Both are for users to fetch; placeopt holds none of their data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from placeopt.errors import BadArgument, BadInput

Row = Mapping[str, str]
GPUMEMNET = {
    "Depth": "depth",
    "Total Activations": "activations",
    "Total Parameters": "parameters",
    "Batch Size": "batch",
    "Batch Normalization Layers": "batch_normalizations",
    "Dropout Layers": "dropouts",
    "Avg GPUTL": "gpu_utilisation_percent",
}
"""Column of its data -> ours; those that a file lacks are left out."""


def lucid_jobs(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return jobs alone (``simulation/analyzer/single_data.csv``): batch, mixed precision, memory, utilisation."""
    return [
        {
            "profile": _lucid_name(row, ""),
            "batch": _cell(row, "batchsize", number),
            "mixed_precision": _cell(row, "amp", number),
            "gpu_memory_mib": _cell(row, "gmem", number),
            "gpu_utilisation_percent": _cell(row, "gpu_util", number),
        }
        for number, row in enumerate(rows)
    ]


def lucid_pairs(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return jobs beside each other (``simulation/data/colocate_info.csv``): two rows a pair."""
    found = []
    for number, row in enumerate(rows):
        for own, other in (("1", "2"), ("2", "1")):
            ratio = _cell(row, f"speed{own}", number)
            found.append({"profile": _lucid_name(row, own), "beside": _lucid_name(row, other), "ratio": ratio})
    return found


def gpumemnet(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return made networks (``Datasets/*/*.csv``): their size, and utilisation."""
    found = []
    for number, row in enumerate(rows):
        named = {ours: row[theirs] for theirs, ours in GPUMEMNET.items() if row.get(theirs)}
        _cell(row, "Avg GPUTL", number)
        found.append({"profile": row.get("Filename") or f"network-{number}", **named})
    return found


TABLES: Mapping[str, Callable[[Sequence[Row]], list[dict[str, str]]]] = {
    "lucid-jobs": lucid_jobs,
    "lucid-pairs": lucid_pairs,
    "gpumemnet": gpumemnet,
}
"""Name of a form -> what makes a table of its rows."""


def table_of(form: str, rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return a table of a published file; `BadArgument` for an unknown form lists the others."""
    if not isinstance(form, str) or form not in TABLES:
        raise BadArgument(f"form: no form {form!r}; known: {', '.join(TABLES)}")
    return TABLES[form](rows)


def _lucid_name(row: Row, side: str) -> str:
    parts = [row.get(f"{name}{side}", "") for name in ("model", "dataset", "batchsize")]
    return "-".join([*parts, *(["amp"] if row.get(f"amp{side}") == "1" else [])])


def _cell(row: Row, column: str, number: int) -> str:
    if not row.get(column):
        raise BadInput(f"table, row {number + 1}: no {column!r}; is it another form than the one that is named?")
    return row[column]
