"""What must hold of the writes of drivers, as an API server accepted them: nothing twice, gangs whole."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Action = tuple[str, str]
MARK = "placeopt.io/"


@dataclass
class Judgement:
    """
    What was found.

    ``actions``: Starts of jobs. ``undone``: Those that were not completed. ``planned``: UID of a pod whose gate was
    lifted -> its planned node. ``evicted``: UIDs of evicted pods.
    """

    faults: list[str] = field(default_factory=list)
    actions: int = 0
    undone: int = 0
    planned: dict[str, str] = field(default_factory=dict)
    evicted: set[str] = field(default_factory=set)


def judge_starts(writes: Iterable[tuple[str, str, Any]], sizes: Mapping[str, int], gone: Collection[str]) -> Judgement:
    """
    Judge all writes.

    Parameters
    ----------
    writes
        Method, path and body of each write that was accepted, in order. The names of pods begin with that of their job,
        which has no dash.
    sizes
        Job -> how many of its pods start together; of those that are not named, one.
    gone
        UIDs of pods that others took away, or refused.
    """
    found = Judgement()
    lifted: dict[Action, list[str]] = defaultdict(list)
    size: dict[Action, int] = {}
    whole: dict[str, Action] = {}
    for _, path, body in writes:
        job = path.split("/pods/")[-1].split("/")[0].partition("-")[0]
        if path.endswith("/eviction"):
            uid = body["deleteOptions"]["preconditions"]["uid"]
            found.evicted.add(uid)
            if uid in lifted.get(whole.get(job, ("", "")), []):
                del whole[job]
        elif "spec" in body and "/pods/" in path:
            notes = body["metadata"]["annotations"]
            action = notes[f"{MARK}round"], notes[f"{MARK}job"]
            lifted[action].append(body["metadata"]["uid"])
            found.planned[body["metadata"]["uid"]] = notes[f"{MARK}node"]
            size[action] = int(notes[f"{MARK}pods"])
            if size[action] < sizes.get(job, 1) and job not in whole:
                found.faults.append(f"{action}: {size[action]} pods of {job}, which does not run as a whole")
            if len(lifted[action]) >= sizes.get(job, 1):
                whole[job] = action
    twice = [uid for uid, count in Counter(u for uids in lifted.values() for u in uids).items() if count > 1]
    found.faults += [f"gate of {uid} lifted twice" for uid in twice]
    found.actions = len(lifted)
    for action, uids in lifted.items():
        if len(uids) < size[action]:
            found.undone += 1
            left = set(uids) - found.evicted - set(gone)
            if left:
                found.faults.append(f"{action}: gates of {len(uids)} of {size[action]} pods lifted, {left} stay")
    return found
