"""What becomes of started pods: taken where planned, refused by their node, or not bound in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placeopt.drivers.kubernetes.api import Object
from placeopt.drivers.kubernetes.marks import (
    bound_node,
    by_action,
    gates,
    has_controller,
    has_ended,
    is_leaving,
    is_lifted,
    is_whole,
    mark_of,
)
from placeopt.drivers.round_report import Outcome, OutcomeKind

Key = tuple[str, str]


@dataclass
class _Open:
    """
    An action that was started, and that is not known to be whole.

    ``done``: UIDs of its pods whose outcome is known. ``lost``: It cannot become whole.
    """

    since: float
    done: set[str] = field(default_factory=set)
    lost: bool = False


class Look(NamedTuple):
    """
    What became of actions since the last look.

    ``outcomes``: Of pods. ``incomplete``: The pods to evict of each action that cannot become whole, until none is
    left. ``whole``: Pods of gangs that are whole, which is not on record for these pods.
    """

    outcomes: list[tuple[Object, Outcome]]
    incomplete: list[list[Object]]
    whole: list[Object]


class OutcomeWatch:
    """
    Follows every action from its start until kubelets have taken all of its pods, or one is known not to come.

    ``bind_s``: Seconds after which a pod without a node counts as refused. Actions of an earlier run of the driver are
    found by the marks of their pods, and their time begins when they are found. That a gang is whole stands in its
    pods, so that a driver which begins again tells one that lost a pod later from one that never was.
    """

    def __init__(self, bind_s: float) -> None:
        self._bind_s = bind_s
        self._open: dict[Key, _Open] = {}

    def started(self, action: Key, now: float) -> None:
        """Follow an action that was started."""
        self._open[action] = _Open(now)

    def dropped(self, action: Key) -> None:
        """No longer follow an action, because it was undone."""
        self._open.pop(action, None)

    def look(self, pods: Sequence[Object], now: float) -> Look:
        """Return what is new of all actions; half-lifted ones go on, those without pods are followed no more."""
        found = Look([], [], [])
        actions = by_action(pods)
        for action, members in actions.items():
            if action not in self._open and _is_open(members):
                self.started(action, now)
        whole = {action for action, members in actions.items() if any(is_whole(pod) for pod in members)}
        for action, state in list(self._open.items()):
            members = actions.get(action, [])
            if not any(gates(pod) for pod in members) and self._is_whole_now(action, state, members, now, found):
                whole.add(action)
        lifted = (pod for action in whole for pod in actions.get(action, []) if is_lifted(pod))
        return found._replace(whole=[pod for pod in lifted if not is_whole(pod)])

    def _is_whole_now(self, action: Key, state: _Open, members: list[Object], now: float, found: Look) -> bool:
        """Add what is new of an action all of whose gates are lifted; return whether all of its pods are taken."""
        size = max((mark.pods for pod in members if (mark := mark_of(pod)) is not None), default=0)
        left = [pod for pod in members if is_lifted(pod) and (size > 1 or bound_node(pod) is None)]
        if state.lost:
            left = [pod for pod in left if has_controller(pod)]  # of the others it was said once that they stay
        else:
            new = [(pod, outcome) for pod in members if (outcome := self._outcome(pod, state, now)) is not None]
            found.outcomes.extend(new)
            bad = any(outcome.kind not in ("as-planned", "elsewhere") for _, outcome in new)
            state.lost = bad or len(members) < size or not members
        if state.lost and left:
            found.incomplete.append(left)
        whole = not state.lost and len(state.done) >= len(members)
        if whole or (state.lost and not any(is_lifted(pod) for pod in members)):
            del self._open[action]
        return whole

    def _outcome(self, pod: Object, state: _Open, now: float) -> Outcome | None:
        """Return the outcome of a pod that has a new one."""
        uid, node = pod["metadata"]["uid"], bound_node(pod)
        mark = mark_of(pod)
        if mark is None or uid in state.done:
            return None
        status: Mapping[str, object] = pod.get("status") or {}
        got = () if node is None else (node,)
        kind: OutcomeKind
        if status.get("phase") == "Failed" and not status.get("containerStatuses"):
            kind, why = "refused", f"{status.get('reason')}: {status.get('message')}"  # no container ever began
        elif has_ended(pod) or (node is not None and status.get("startTime")):  # the kubelet has taken it
            kind, why = "as-planned" if node == mark.node else "elsewhere", ""
        elif is_leaving(pod):
            kind, why = "gone", "deleted before it ran"
        elif node is not None or now - state.since < self._bind_s:
            return None
        else:
            kind, why = "not-started", _scheduler_says(pod)
        state.done.add(uid)
        return Outcome(mark.job, kind, (mark.node,), got, why)


def _is_open(members: Sequence[Object]) -> bool:
    """Return whether an action that this driver does not know of is to be followed."""
    lifted = [pod for pod in members if is_lifted(pod)]
    if any(not is_whole(pod) for pod in lifted):
        return not any(is_whole(pod) for pod in members)
    return any(bound_node(pod) is None for pod in lifted)


def _scheduler_says(pod: Object) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("message"):
            return str(condition["message"])
    return "kube-scheduler has not said why"
