"""Stand-ins for kubelets: they admit the pods that are bound to their nodes, or refuse them, and end them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Protocol

GPU = "nvidia.com/gpu"
Object = dict[str, Any]


class Objects(Protocol):
    """What kubelets need of an API server."""

    def change(self, plural: str, name: str, change: Callable[[Object], None], namespace: str | None = None) -> None:
        """Change an object."""

    def remove(self, plural: str, name: str, namespace: str | None = None) -> None:
        """Delete an object."""


class Kubelets:
    """
    The kubelets of all nodes, a pod at a time: what is bound runs at once, what is being deleted goes.

    ``refusing``: Nodes whose kubelet admits no pod; ``refused_gpus``: numbers of GPUs that no kubelet admits.
    ``holds``: Names of pods that never end once they are being deleted.
    """

    def __init__(self, api: Objects) -> None:
        self.api = api
        self.refusing: set[str] = set()
        self.refused_gpus: set[int] = set()
        self.holds: set[str] = set()

    def look(self, found: Object) -> None:
        """Do what the kubelet of a pod's node would."""
        name, phase = found["metadata"]["name"], found["status"]["phase"]
        if "deletionTimestamp" in found["metadata"]:
            if name not in self.holds:
                self.leave(found)
        elif found["spec"].get("nodeName") and phase == "Pending":
            if self.refuses(found):
                self.reject(found)
            else:
                self.begin(found)

    def refuses(self, found: Object) -> bool:
        """Return whether the kubelet does not admit a pod."""
        return found["spec"]["nodeName"] in self.refusing or gpus_of(found) in self.refused_gpus

    def reject(self, found: Object) -> None:
        """Refuse a pod as a device plugin without free devices does."""
        status = {"phase": "Failed", "reason": f"OutOf{GPU}", "message": "Pod was rejected"}
        self.api.change("pods", found["metadata"]["name"], lambda pod: pod["status"].update(status))

    def begin(self, found: Object) -> None:
        """Take a pod."""
        self.api.change("pods", found["metadata"]["name"], _runs)

    def leave(self, found: Object) -> None:
        """Let a pod that is being deleted go."""
        self.api.remove("pods", found["metadata"]["name"])


class Runs:
    """
    Which jobs have run for their time: so long all of their pods have run together.

    ``job_of``, ``size_of``, ``run_s_of``: Of a pod: its job, how many pods of it must run, and for how long.
    """

    def __init__(
        self,
        job_of: Callable[[Object], str],
        size_of: Callable[[Object], int],
        run_s_of: Callable[[Object], float],
    ) -> None:
        self._job_of, self._size_of, self._run_s_of = job_of, size_of, run_s_of
        self._since: dict[str, float] = {}

    def over(self, pods: Iterable[Object]) -> list[list[Object]]:
        """Return the pods of each job whose time is over."""
        now, ended = time.monotonic(), []
        jobs: dict[str, list[Object]] = defaultdict(list)
        for found in pods:
            if found["status"]["phase"] in ("Running", "Pending"):
                jobs[self._job_of(found)].append(found)
        for name, members in jobs.items():
            running = [found for found in members if found["status"]["phase"] == "Running"]
            if len(running) >= self._size_of(members[0]):
                if now - self._since.setdefault(name, now) > self._run_s_of(members[0]):
                    ended.append(running)
            else:
                self._since.pop(name, None)
        return ended


def gpus_of(found: Object) -> int:
    """Return how many GPUs a pod has."""
    return sum(int(c["resources"]["limits"].get(GPU, 0)) for c in found["spec"]["containers"])


def _runs(found: Object) -> None:
    """Write into a pod that its kubelet has taken it."""
    found["status"].update(phase="Running", startTime=found["metadata"]["creationTimestamp"])


def ends(found: Object) -> None:
    """Write into a pod that it has ended well."""
    found["status"]["phase"] = "Succeeded"
