"""
Files: rounds and plans as JSON, tables and figures, and what other programs write.

``read_document`` and ``loads`` take every record of `placeopt.model`, ``dumps`` writes it. `slurm`, `kubernetes`,
`topo` and `job_table` have a room each; ``docs/extending.md`` shows how another one is written.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.formats.bounds import check_bounds as check_bounds
    from placeopt.formats.bounds import check_lines as check_lines
    from placeopt.formats.columns import cluster_from_columns as cluster_from_columns
    from placeopt.formats.columns import instance_from_columns as instance_from_columns
    from placeopt.formats.documents import dumps as dumps
    from placeopt.formats.documents import loads as loads
    from placeopt.formats.documents import read_document as read_document
    from placeopt.formats.documents import read_instance as read_instance
    from placeopt.formats.documents import read_plan as read_plan
    from placeopt.formats.documents import read_scenario as read_scenario
    from placeopt.formats.documents import write_instance as write_instance
    from placeopt.formats.documents import write_plan as write_plan
    from placeopt.formats.documents import write_scenario as write_scenario
    from placeopt.formats.faults import make_record as make_record
    from placeopt.formats.files import MAX_BYTES as MAX_BYTES
    from placeopt.formats.files import make_folder as make_folder
    from placeopt.formats.files import read_bytes as read_bytes
    from placeopt.formats.files import write_bytes as write_bytes
    from placeopt.formats.import_notes import KEPT as KEPT
    from placeopt.formats.import_notes import LEFT_OUT as LEFT_OUT
    from placeopt.formats.import_notes import ImportNotes as ImportNotes
    from placeopt.formats.json_entry import JsonEntry as JsonEntry
    from placeopt.formats.json_entry import read_json as read_json
    from placeopt.formats.kubernetes.single import KubernetesObjects as KubernetesObjects
    from placeopt.formats.kubernetes.snapshot import read_kubernetes as read_kubernetes
    from placeopt.formats.observed_round import ObservedJob as ObservedJob
    from placeopt.formats.observed_round import ObservedWorker as ObservedWorker
    from placeopt.formats.observed_round import observed_instance as observed_instance
    from placeopt.formats.openb import OPENB_POLICY as OPENB_POLICY
    from placeopt.formats.openb import read_openb as read_openb
    from placeopt.formats.priority_rule import DEFAULT_RULE as DEFAULT_RULE
    from placeopt.formats.priority_rule import PriorityRule as PriorityRule
    from placeopt.formats.schema import DOCUMENTS as DOCUMENTS
    from placeopt.formats.schema import document_schema as document_schema
    from placeopt.formats.schema import write_schemas as write_schemas
    from placeopt.formats.slurm.snapshot import read_slurm as read_slurm

__getattr__, __dir__ = lazy_names(__name__)
