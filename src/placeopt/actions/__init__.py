"""From a plan to what a scheduler does: ordered actions, and their forms for Slurm and Kubernetes."""

from placeopt.actions.action import Action, ActionKind, ActionPart, as_bindings, as_scontrol
from placeopt.actions.order import kept_ranks, plan_actions, start_action

__all__ = [
    "Action",
    "ActionKind",
    "ActionPart",
    "as_bindings",
    "as_scontrol",
    "kept_ranks",
    "plan_actions",
    "start_action",
]
