"""Which pods are kept from which nodes for a while, because the node refused pods that request the same."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable

from placeopt.drivers.backoff import Backoff
from placeopt.drivers.kubernetes.api import Object
from placeopt.model import Instance, Job

LONGEST_S = 1800.0


class Refusals:
    """
    Pauses for pairs of a node and what a pod requests there.

    A pod that no kubelet admits keeps its like from the nodes that it has tried, and closes them to no other pod; a
    node that admits no pod is closed to one kind of request after the other.

    ``first_s``: Seconds of the first pause, twice as many after each further refusal in a row, at most `LONGEST_S`.
    """

    def __init__(self, first_s: float) -> None:
        self._pairs: Backoff[tuple[str, str]] = Backoff(first_s, LONGEST_S)

    def refused(self, pod: Object, node: str, now_s: float) -> float:
        """Count a refusal; return for how many seconds such pods are kept from the node."""
        return self._pairs.fail((node, requests_of(pod)), now_s) - now_s

    def taken(self, pod: Object, node: str) -> None:
        """Forget the refusals of such pods by a node that has taken one."""
        self._pairs.succeed((node, requests_of(pod)))

    def keep_from_nodes(self, instance: Instance, pods: Iterable[Object], now_s: float) -> Instance:
        """Return the round, with the nodes excluded that refused what pods of a waiting job request."""
        closed: dict[str, set[str]] = defaultdict(set)
        for node, requests in self._pairs.paused(now_s):
            closed[requests].add(node)
        if not closed:
            return instance
        nodes_of = {pod["metadata"]["uid"]: closed.get(requests_of(pod), set()) for pod in pods}
        running = {held.job for held in instance.running}

        def kept(job: Job) -> Job:
            workers = () if job.origin is None or job.id in running else job.origin.workers
            nodes = {node for worker in workers for node in nodes_of.get(worker.id or "", ())}
            if not nodes:
                return job
            return job.with_conditions(nodes_excluded=tuple(sorted(nodes.union(job.conditions.nodes_excluded))))

        return instance.model_copy(update={"jobs": tuple(map(kept, instance.jobs))})


def requests_of(pod: Object) -> str:
    """Return what a kubelet admits a pod by, as text: requests, ports, runtime class."""
    spec = pod["spec"]
    containers = [
        (container.get("resources"), container.get("ports"))
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
    ]
    return json.dumps([containers, spec.get("overhead"), spec.get("runtimeClassName")], sort_keys=True)
