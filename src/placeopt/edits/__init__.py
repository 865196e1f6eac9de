"""
The language of edits: steps that change a round, as records.

`apply` carries steps out on a copy of a round, `placeopt.Engine.edit` on a cluster that stays. Patch files hold steps,
clients of the service send them, `placeopt.explain` proposes some, `placeopt.whatif` and `placeopt.simulation.replay`
compare the results of variants of steps.
"""

from placeopt.edits.answers import Answer, true_of
from placeopt.edits.completions import Of, Unread, truth, unread_in
from placeopt.edits.edited_round import added, apply, at_step, displaced
from placeopt.edits.hardware_steps import (
    AddDomains,
    AddMachines,
    AddNodes,
    Drain,
    Fail,
    HardwareStep,
    Label,
    PutNodes,
    RemoveNodes,
    ReplaceNodes,
    SetAmount,
    TaintNodes,
    without_nodes,
)
from placeopt.edits.job_steps import (
    AddJobs,
    ChangeJob,
    ChangeRunning,
    RemoveJobs,
    ScaleArrivals,
    ScaleDemand,
    Start,
    Stop,
    change_of,
)
from placeopt.edits.nodes import copy_of, free_name, node_of_type
from placeopt.edits.records import checked_round, edit_instance, job_arriving_at
from placeopt.edits.step import Step
from placeopt.edits.steps import AnyStep, ChangeQueue, Patch, RemoveHolds, SetPolicy, SetTime, more_nodes

__all__ = [
    "AddDomains",
    "AddJobs",
    "AddMachines",
    "AddNodes",
    "Answer",
    "AnyStep",
    "ChangeJob",
    "ChangeQueue",
    "ChangeRunning",
    "Drain",
    "Fail",
    "HardwareStep",
    "Label",
    "Of",
    "Patch",
    "PutNodes",
    "RemoveHolds",
    "RemoveJobs",
    "RemoveNodes",
    "ReplaceNodes",
    "ScaleArrivals",
    "ScaleDemand",
    "SetAmount",
    "SetPolicy",
    "SetTime",
    "Start",
    "Step",
    "Stop",
    "TaintNodes",
    "Unread",
    "added",
    "apply",
    "at_step",
    "change_of",
    "checked_round",
    "copy_of",
    "displaced",
    "edit_instance",
    "free_name",
    "job_arriving_at",
    "more_nodes",
    "node_of_type",
    "true_of",
    "truth",
    "unread_in",
    "without_nodes",
]
