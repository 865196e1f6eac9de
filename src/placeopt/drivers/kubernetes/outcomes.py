"""What becomes of started pods: taken where planned, refused by their node, or not bound in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from placeopt.drivers.kubernetes.api import Object
from placeopt.drivers.kubernetes.marks import bound_node, by_action, gates, has_ended, is_leaving, is_lifted, mark_of

Key = tuple[str, str]


class Outcome(NamedTuple):
    """What became of a pod."""

    pod: Object
    result: Literal["bound", "elsewhere", "refused", "unbound", "gone"]
    """``unbound``: kube-scheduler found no room on the planned node in time; ``gone``: deleted before it ran."""
    node: str
    """The planned node."""
    why: str = ""


@dataclass
class _Open:
    """An action that was started and is not known to have ended well or badly."""

    since: float
    done: set[str] = field(default_factory=set)


class OutcomeWatch:
    """
    Follows every action from its start until kubelets have taken all of its pods, or one is known not to come.

    ``bind_s``: Seconds after which a pod without a node counts as refused. Actions of an earlier run of the driver are
    found by the marks of their pods, and their time begins when they are found.
    """

    def __init__(self, bind_s: float) -> None:
        self._bind_s = bind_s
        self._open: dict[Key, _Open] = {}
        self._known: set[Key] = set()

    def started(self, action: Key, now: float) -> None:
        """Follow an action that was started."""
        self._known.add(action)
        self._open[action] = _Open(now)

    def dropped(self, action: Key) -> None:
        """No longer follow an action, because it was undone."""
        self._open.pop(action, None)

    def look(self, pods: Sequence[Object], now: float) -> tuple[list[Outcome], list[list[Object]]]:
        """
        Return the new outcomes, and the pods of each action that cannot be completed, which is not followed any more.

        Actions all of whose pods run are not followed any more either. Half-lifted ones go on.
        """
        actions = by_action(pods)
        for action, members in actions.items():
            waiting = any(is_lifted(pod) and bound_node(pod) is None for pod in members)
            if action not in self._known and waiting:
                self.started(action, now)
        self._known &= actions.keys() | self._open.keys()
        outcomes: list[Outcome] = []
        incomplete: list[list[Object]] = []
        for action, state in list(self._open.items()):
            members = actions.get(action, [])
            if any(gates(pod) for pod in members):
                continue
            new = [outcome for pod in members if (outcome := self._outcome(pod, state, now)) is not None]
            outcomes += new
            bad = any(outcome.result in ("refused", "unbound", "gone") for outcome in new)
            size = max((mark.pods for pod in members if (mark := mark_of(pod)) is not None), default=0)
            if bad or len(members) < size or not members:
                incomplete.append(members)
                del self._open[action]
            elif len(state.done) >= len(members):
                del self._open[action]
        return outcomes, incomplete

    def _outcome(self, pod: Object, state: _Open, now: float) -> Outcome | None:
        """Return the outcome of a pod that has a new one."""
        uid, node = pod["metadata"]["uid"], bound_node(pod)
        mark = mark_of(pod)
        if mark is None or uid in state.done:
            return None
        status: Mapping[str, object] = pod.get("status") or {}
        if status.get("phase") == "Failed" and not status.get("containerStatuses"):
            state.done.add(uid)  # no container ever began: the kubelet did not admit it
            return Outcome(pod, "refused", mark.node, f"{status.get('reason')}: {status.get('message')}")
        if has_ended(pod) or (node is not None and status.get("startTime")):  # the kubelet has taken it
            state.done.add(uid)
            return Outcome(pod, "bound" if node == mark.node else "elsewhere", mark.node, f"on {node}")
        if is_leaving(pod):
            state.done.add(uid)
            return Outcome(pod, "gone", mark.node, "deleted before it ran")
        if node is not None or now - state.since < self._bind_s:
            return None
        state.done.add(uid)
        return Outcome(pod, "unbound", mark.node, _scheduler_says(pod))


def _scheduler_says(pod: Object) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("message"):
            return str(condition["message"])
    return "kube-scheduler has not said why"
