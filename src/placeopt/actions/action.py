"""
What a scheduler does to carry out a plan: one action for each job that starts, moves, shrinks or stops.

Actions are written as commands of Slurm, or as objects of Kubernetes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from placeopt.errors import BadInput
from placeopt.model.base import Count, GpuIndex, Id, Record, Revision
from placeopt.model.job import Origin

ActionKind = Literal["start", "move", "shrink", "preempt"]


class ActionPart(Record):
    """One worker of an action."""

    rank: Count
    """Rank of the worker: among ``parts`` the one that it has after the action, among ``leaves`` the one before."""
    node: Id
    """Node on which it is."""
    gpus: tuple[GpuIndex, ...] = ()
    """Indices of its GPUs on the node."""
    origin: Origin | None = None
    """The worker in the system that it comes from, where the job states it."""


class Action(Record):
    """One step. All room that it takes is free once the steps in ``after`` are done."""

    do: ActionKind
    """``move``: stop it, then start it elsewhere; ``shrink``: stop some of its workers; ``preempt``: stop all."""
    job: Id
    """Name of the job."""
    revision: Revision
    """Revision of the instance that the plan is for."""
    origin: Origin | None = None
    """The job in the system that it comes from."""
    parts: tuple[ActionPart, ...] = ()
    """Workers that run once it is done, of a start those that start; none of a job that is preempted."""
    leaves: tuple[ActionPart, ...] = ()
    """Workers that it stops where they run now."""
    after: tuple[Count, ...] = ()
    """Numbers of the actions, from 0, that have to be done before."""


def as_scontrol(actions: Sequence[Action]) -> str:
    """
    Return lines for a shell, one command each, in the order of the actions; comments say what Slurm cannot do.

    A job that starts is told its nodes and released; which GPUs of them it gets is Slurm's choice. One that moves or
    stops is requeued and held. Slurm cannot take single workers from a node.

    Raises
    ------
    BadInput
        If a job has no origin with a job id of Slurm.
    """
    lines: list[str] = []
    for action in actions:
        name = shlex.quote(_slurm_id(action))
        nodes = ",".join(dict.fromkeys(part.node for part in action.parts))
        if action.do in ("move", "preempt"):
            lines.append(f"scontrol requeuehold {name}")
        if action.do in ("move", "start"):
            lines.append(f"scontrol update JobId={name} ReqNodeList={shlex.quote(nodes)}")
            lines.append(f"scontrol release {name}")
        elif action.do == "shrink":
            left = {part.node for part in action.parts}
            if any(part.node in left for part in action.leaves):
                lines.append(f"# job {name} keeps some of its workers on a node: Slurm gives up whole nodes only")
            else:
                lines.append(f"scontrol update JobId={name} ReqNodeList={shlex.quote(nodes)}")
    return "".join(f"{line}\n" for line in lines)


def _slurm_id(action: Action) -> str:
    if action.origin is None or action.origin.id is None:
        raise BadInput(
            f"job {action.job!r}: no origin with an id, so Slurm cannot identify the job; "
            "rounds of 'import slurm' have it"
        )
    return action.origin.id


def as_bindings(actions: Sequence[Action]) -> dict[str, Any]:
    """
    Return a List of Kubernetes: a Binding for each pod that starts, an Eviction for each that stops.

    A pod that moves is evicted; the pod that its controller makes instead has another UID, so it is bound in a later
    round. GPUs on the node are the choice of its device plugin.

    Raises
    ------
    BadInput
        If a worker has no origin with namespace and name of a pod.
    """
    items: list[dict[str, Any]] = []
    for action in actions:
        items += [_eviction(action, part) for part in action.leaves]
        if action.do == "start" and not _restarts(action, actions):
            items += [_binding(action, part) for part in action.parts]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _restarts(action: Action, actions: Iterable[Action]) -> bool:
    """Whether the job was stopped by another action, to break a ring of moves: its pods are made again."""
    return any(other.job == action.job and other is not action for other in actions)


def _pod(action: Action, part: ActionPart) -> tuple[dict[str, str], dict[str, str]]:
    """Return namespace and name of a pod, and its UID where that is known."""
    namespace, slash, name = part.origin.name.partition("/") if part.origin is not None else ("", "", "")
    if not slash:
        raise BadInput(
            f"job {action.job!r}: worker {part.rank} has no origin NAMESPACE/NAME, so it is not a pod; rounds of "
            "'import kubernetes' have it"
        )
    uid = part.origin.id if part.origin is not None else None
    return {"namespace": namespace, "name": name}, {} if uid is None else {"uid": uid}


def _binding(action: Action, part: ActionPart) -> dict[str, Any]:
    named, uid = _pod(action, part)
    target = {"apiVersion": "v1", "kind": "Node", "name": part.node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {**named, **uid}, "target": target}


def _eviction(action: Action, part: ActionPart) -> dict[str, Any]:
    named, uid = _pod(action, part)
    options = {"deleteOptions": {"preconditions": uid}} if uid else {}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": named, **options}
