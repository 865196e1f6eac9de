"""The objects of a cluster as the round has to see them: what placeopt may place waits, what it promised is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from placeopt.drivers.kubernetes.api import Object
from placeopt.drivers.kubernetes.gang_size import Gang
from placeopt.drivers.kubernetes.marks import (
    GATE,
    bound_node,
    gates,
    has_controller,
    has_ended,
    is_leaving,
    is_lifted,
    is_whole,
    mark_of,
    waits_for_placeopt,
)
from placeopt.drivers.kubernetes.patches import as_submitted

LEAVING_S = 30.0
"""Seconds after its deadline for which a pod that is being deleted still counts as about to go."""

SLOWEST_S = 600.0
"""Longest pause before Kubernetes makes a Job's lost pod anew: MaxJobPodFailureBackOff of pkg/controller/job."""


@dataclass
class Observed:
    """
    What a round is made of.

    ``objects``: For the reader of Kubernetes' objects. ``leaving``: Nodes where pods are being deleted: their room
    counts as free, and is not yet. ``standings``: Number of pods without a node: ``lifted``: their gate is lifted;
    ``others``: kube-scheduler places them, or they wait behind other gates; ``unsettled``: their gang may still be in
    the making.
    """

    objects: list[Object]
    leaving: set[str] = field(default_factory=set)
    standings: Counter[str] = field(default_factory=Counter)


def observe(
    nodes: Iterable[Object],
    pods: Sequence[Object],
    others: Iterable[Object],
    *,
    evicted: Collection[str],
    unsettled: Collection[str],
    now_s: float,
) -> Observed:
    """
    Return the objects of a round.

    Parameters
    ----------
    nodes, pods, others
        As the API server has them.
    evicted
        UIDs of pods whose eviction was accepted.
    unsettled
        UIDs of pods that are left out because their gang may lack pods.
    now_s
        Seconds since 1970.
    """
    names: set[str] = set()
    found = Observed([])
    for node in nodes:
        names.add(node["metadata"]["name"])
        found.objects.append(node)
    found.objects += others
    for pod in pods:
        node_name, mark = bound_node(pod), mark_of(pod)
        if mark is not None and not gates(pod):
            pod = as_submitted(pod, mark)
        if node_name is not None:
            about_to_go = pod["metadata"].get("uid") in evicted or _is_about_to_go(pod, now_s)
            if about_to_go and not has_ended(pod):
                found.leaving.add(node_name)
            else:
                found.objects.append(pod)
        elif waits_for_placeopt(pod):
            if pod["metadata"]["uid"] in unsettled:
                found.standings["unsettled"] += 1
            else:
                found.objects.append(_with_spec(pod, schedulingGates=None))
        elif is_lifted(pod):
            found.standings["lifted"] += 1
            if mark is not None and mark.node in names:
                found.objects.append(_with_spec(pod, nodeName=mark.node))
        elif not has_ended(pod) and not is_leaving(pod):
            found.standings["others"] += 1
            nominated = (pod.get("status") or {}).get("nominatedNodeName")
            if nominated in names:
                found.objects.append(_with_spec(pod, nodeName=nominated))
            elif GATE in gates(pod):
                found.objects.append(pod)
    return found


class Settling:
    """
    Which pods belong to gangs that may still be in the making.

    Controllers create the pods of a gang one by one. Where a gang states how many it has, the reader waits for them;
    elsewhere its newest pod must have been known for ``settle_s`` seconds; where an earlier start of it was not whole
    and had more pods than there are, for `SLOWEST_S`. While pods run of a start that is not known to be whole, the
    others wait: either that start becomes whole, or these are evicted and all start together.

    ``gang_of``: The gang of a pod, None if it is alone.
    """

    def __init__(self, settle_s: float, gang_of: Callable[[Object], Gang | None]) -> None:
        self._settle_s, self._gang_of = settle_s, gang_of
        self._first_seen: dict[str, float] = {}
        self._started: dict[Gang, tuple[int, float]] = {}
        """Gang -> how many pods its last start had that was not whole, and when it was last seen."""

    def unsettled(self, pods: Collection[Object], now: float) -> set[str]:
        """Return the UIDs of pods that wait for the rest of their gang; ``now``: seconds of a clock of the caller."""
        waiting: dict[Gang, list[str]] = {}
        starting: set[str] = set()
        for pod in pods:
            waits = waits_for_placeopt(pod)
            gang = self._gang_of(pod) if waits or not is_whole(pod) else None
            if gang is None:
                continue
            if waits:
                waiting.setdefault(gang, []).append(pod["metadata"]["uid"])
            elif (mark := mark_of(pod)) is not None:
                self._started[gang] = mark.pods, now
                if is_lifted(pod) and has_controller(pod):
                    starting.add(gang.id)
        self._started = {gang: last for gang, last in self._started.items() if now - last[1] < SLOWEST_S}
        known = {uid: self._first_seen.get(uid, now) for uids in waiting.values() for uid in uids}
        self._first_seen = known
        lacking = self._lacking(waiting, pods)
        new = set()
        for gang, uids in waiting.items():
            settle_s = SLOWEST_S if gang in lacking else self._settle_s
            if not gang.has_size and now - max(known[uid] for uid in uids) < settle_s:
                new.add(gang)
        return {uid for gang, uids in waiting.items() if gang in new or gang.id in starting for uid in uids}

    def _lacking(self, waiting: Mapping[Gang, Sequence[str]], pods: Iterable[Object]) -> set[Gang]:
        """Return the gangs that have fewer pods than their last start, which was not whole."""
        lacks = {
            gang: self._started[gang][0] - len(uids)
            for gang, uids in waiting.items()
            if gang in self._started and self._started[gang][0] > len(uids)
        }
        for pod in pods if lacks else ():
            gone = waits_for_placeopt(pod) or is_leaving(pod) or (pod.get("status") or {}).get("phase") == "Failed"
            gang = None if gone else self._gang_of(pod)
            if gang is not None and gang in lacks:
                lacks[gang] -= 1
        return {gang for gang, count in lacks.items() if count > 0}


def usable_nodes(nodes: Iterable[Object]) -> set[str]:
    """Return the names of the nodes that are ready and not cordoned."""
    return {node["metadata"]["name"] for node in nodes if not node["spec"].get("unschedulable") and _is_ready(node)}


def _is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return all(one.get("status") == "True" for one in conditions if one.get("type") == "Ready")


def _is_about_to_go(pod: Object, now_s: float) -> bool:
    """Return whether a pod is being deleted, and not overdue; ``deletionTimestamp`` is when it ought to be gone."""
    text = pod["metadata"].get("deletionTimestamp")
    if text is None:
        return False
    return now_s < datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() + LEAVING_S


def _with_spec(pod: Object, **fields: Any) -> Object:
    """Return a copy of a pod with other fields in its spec; what is None goes."""
    spec = {key: value for key, value in {**pod["spec"], **fields}.items() if value is not None}
    return {**pod, "spec": spec}
