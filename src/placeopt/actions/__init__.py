"""From a plan to what a scheduler does: ordered actions, and their forms for Slurm and Kubernetes."""

from placeopt.actions.action import Action, ActionPart
from placeopt.actions.order import plan_actions

__all__ = ["Action", "ActionPart", "plan_actions"]
