"""
What other programs write, as rounds: each importer only translates.

`slurm`, `kubernetes`, `topo` and `job_table` have a room each; ``docs/extending.md`` shows how another one is written.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.importers.import_notes import KEPT as KEPT
    from placeopt.importers.import_notes import LEFT_OUT as LEFT_OUT
    from placeopt.importers.import_notes import NOT_ELIGIBLE as NOT_ELIGIBLE
    from placeopt.importers.import_notes import ImportNotes as ImportNotes
    from placeopt.importers.json_entry import JsonEntry as JsonEntry
    from placeopt.importers.json_entry import read_json as read_json
    from placeopt.importers.kubernetes.snapshot import KubernetesObjects as KubernetesObjects
    from placeopt.importers.kubernetes.snapshot import read_kubernetes as read_kubernetes
    from placeopt.importers.observed_round import ObservedJob as ObservedJob
    from placeopt.importers.observed_round import ObservedWorker as ObservedWorker
    from placeopt.importers.observed_round import observed_instance as observed_instance
    from placeopt.importers.openb import OPENB_POLICY as OPENB_POLICY
    from placeopt.importers.openb import read_openb as read_openb
    from placeopt.importers.priority_rule import DEFAULT_RULE as DEFAULT_RULE
    from placeopt.importers.priority_rule import PriorityRule as PriorityRule
    from placeopt.importers.slurm.snapshot import read_slurm as read_slurm

__getattr__, __dir__ = lazy_names(__name__)
