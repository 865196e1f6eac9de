"""
Files: rounds and plans as JSON, tables and figures, and what other programs write.

``read_document`` and ``loads`` take every record of `placeopt.model`, ``dumps`` writes it. `slurm`, `kubernetes`,
`topo` and `job_table` have a room each; ``docs/extending.md`` shows how another one is written.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.formats.bounds import check_bounds, check_lines
    from placeopt.formats.columns import cluster_from_columns, instance_from_columns
    from placeopt.formats.csv_table import csv_text, read_csv_table
    from placeopt.formats.documents import (
        dumps,
        loads,
        read_document,
        read_instance,
        read_plan,
        read_scenario,
        write_instance,
        write_plan,
        write_scenario,
    )
    from placeopt.formats.faults import make_record
    from placeopt.formats.figure import (
        COLOURS,
        FORMATS,
        MARKS,
        Figure,
        Tips,
        can_draw,
        ink_on,
        render,
    )
    from placeopt.formats.files import (
        MAX_BYTES,
        make_folder,
        read_bytes,
        write_bytes,
    )
    from placeopt.formats.import_notes import KEPT, LEFT_OUT, ImportNotes
    from placeopt.formats.json_entry import JsonEntry, read_json
    from placeopt.formats.json_lines import JsonLinesFile, read_json_lines
    from placeopt.formats.kubernetes.single import KubernetesObjects
    from placeopt.formats.kubernetes.snapshot import read_kubernetes
    from placeopt.formats.observed_round import ObservedJob, ObservedWorker, observed_instance
    from placeopt.formats.openb import OPENB_POLICY, read_openb, read_openb_run_times
    from placeopt.formats.priority_rule import DEFAULT_RULE, PriorityRule
    from placeopt.formats.qaplib import parse_qaplib, parse_traffic
    from placeopt.formats.sc17 import read_sc17, read_sc17_times
    from placeopt.formats.schema import DOCUMENTS, document_schema, write_schemas
    from placeopt.formats.slurm.single import SlurmObjects
    from placeopt.formats.slurm.snapshot import read_slurm
    from placeopt.formats.solu import (
        COST,
        Known,
        Number,
        is_equal,
        read_solu,
        write_solu,
    )
    from placeopt.formats.table import Table, Value, markdown_table
    from placeopt.formats.traces import (
        PhillyJob,
        SiaJob,
        read_philly,
        read_sia,
    )

__all__ = [
    "COLOURS",
    "COST",
    "DEFAULT_RULE",
    "DOCUMENTS",
    "FORMATS",
    "KEPT",
    "LEFT_OUT",
    "MARKS",
    "MAX_BYTES",
    "OPENB_POLICY",
    "Figure",
    "ImportNotes",
    "JsonEntry",
    "JsonLinesFile",
    "Known",
    "KubernetesObjects",
    "Number",
    "ObservedJob",
    "ObservedWorker",
    "PhillyJob",
    "PriorityRule",
    "SiaJob",
    "SlurmObjects",
    "Table",
    "Tips",
    "Value",
    "can_draw",
    "check_bounds",
    "check_lines",
    "cluster_from_columns",
    "csv_text",
    "document_schema",
    "dumps",
    "ink_on",
    "instance_from_columns",
    "is_equal",
    "loads",
    "make_folder",
    "make_record",
    "markdown_table",
    "observed_instance",
    "parse_qaplib",
    "parse_traffic",
    "read_bytes",
    "read_csv_table",
    "read_document",
    "read_instance",
    "read_json",
    "read_json_lines",
    "read_kubernetes",
    "read_openb",
    "read_openb_run_times",
    "read_philly",
    "read_plan",
    "read_sc17",
    "read_sc17_times",
    "read_scenario",
    "read_sia",
    "read_slurm",
    "read_solu",
    "render",
    "write_bytes",
    "write_instance",
    "write_plan",
    "write_scenario",
    "write_schemas",
    "write_solu",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "bounds": (
            "check_bounds",
            "check_lines",
        ),
        "columns": (
            "cluster_from_columns",
            "instance_from_columns",
        ),
        "csv_table": (
            "csv_text",
            "read_csv_table",
        ),
        "documents": (
            "dumps",
            "loads",
            "read_document",
            "read_instance",
            "read_plan",
            "read_scenario",
            "write_instance",
            "write_plan",
            "write_scenario",
        ),
        "faults": ("make_record",),
        "figure": (
            "COLOURS",
            "FORMATS",
            "MARKS",
            "Figure",
            "Tips",
            "can_draw",
            "ink_on",
            "render",
        ),
        "files": (
            "MAX_BYTES",
            "make_folder",
            "read_bytes",
            "write_bytes",
        ),
        "import_notes": (
            "KEPT",
            "LEFT_OUT",
            "ImportNotes",
        ),
        "json_entry": (
            "JsonEntry",
            "read_json",
        ),
        "json_lines": (
            "JsonLinesFile",
            "read_json_lines",
        ),
        "kubernetes.single": ("KubernetesObjects",),
        "kubernetes.snapshot": ("read_kubernetes",),
        "observed_round": (
            "ObservedJob",
            "ObservedWorker",
            "observed_instance",
        ),
        "openb": (
            "OPENB_POLICY",
            "read_openb",
            "read_openb_run_times",
        ),
        "priority_rule": (
            "DEFAULT_RULE",
            "PriorityRule",
        ),
        "qaplib": (
            "parse_qaplib",
            "parse_traffic",
        ),
        "sc17": (
            "read_sc17",
            "read_sc17_times",
        ),
        "schema": (
            "DOCUMENTS",
            "document_schema",
            "write_schemas",
        ),
        "slurm.single": ("SlurmObjects",),
        "slurm.snapshot": ("read_slurm",),
        "solu": (
            "COST",
            "Known",
            "Number",
            "is_equal",
            "read_solu",
            "write_solu",
        ),
        "table": (
            "Table",
            "Value",
            "markdown_table",
        ),
        "traces": (
            "PhillyJob",
            "SiaJob",
            "read_philly",
            "read_sia",
        ),
    },
)
