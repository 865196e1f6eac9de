"""
The filters of Kubernetes' scheduler, written down once more: plainly, one pod at a time, from the objects themselves.

It shares nothing with the importer, so that the two can be compared. It covers what `random_cluster` makes: cordons,
taints, node selectors, ports, CPU, memory, GPUs, network cards, storage, number of pods, affinity and anti-affinity by
labels.
"""

import random
from typing import Any

from helpers.kubernetes_objects import HOSTNAME, apart, near, node, pod, term

ZONE = "topology.kubernetes.io/zone"
CARD, STORAGE = "rdma/hca", "ephemeral-storage"
Object = dict[str, Any]


class Scheduler:
    """Nodes and the pods on them."""

    def __init__(self, nodes: list[Object]) -> None:
        self.nodes = {manifest["metadata"]["name"]: manifest for manifest in nodes}
        self.on: list[tuple[str, Object]] = []

    def bind(self, manifest: Object, name: str) -> None:
        """Put a pod on a node, whatever the filters say."""
        self.on.append((name, manifest))

    def fits(self, manifest: Object, name: str) -> bool:
        """Tell whether all filters let a pod onto a node."""
        here, labels = self.nodes[name], self.nodes[name]["metadata"]["labels"]
        if here["spec"].get("unschedulable"):
            return False
        tolerated = {(t["key"], t["effect"]) for t in manifest["spec"].get("tolerations", [])}
        if any((t["key"], t["effect"]) not in tolerated for t in here["spec"].get("taints", [])):
            return False
        if any(labels.get(key) != value for key, value in manifest["spec"].get("nodeSelector", {}).items()):
            return False
        beside = [other for at, other in self.on if at == name]
        taken = [port for other in beside for port in ports(other)]
        if any(a[1] == b[1] and (a[0] == b[0] or "" in (a[0], b[0])) for a in ports(manifest) for b in taken):
            return False
        for resource, has in here["status"]["allocatable"].items():
            if sum(amount(other, resource) for other in [*beside, manifest]) > int(has) and amount(manifest, resource):
                return False
        return self.anti_affinity(manifest, name) and self.affinity(manifest, name)

    def value(self, name: str, key: str) -> str | None:
        """Return a label of a node."""
        label: str | None = self.nodes[name]["metadata"]["labels"].get(key)
        return label

    def anti_affinity(self, manifest: Object, name: str) -> bool:
        """Tell whether no pod in the node's domains excludes this pod, or is excluded by it."""
        for at, other in self.on:
            for holder, met in ((manifest, other), (other, manifest)):
                for rule in terms(holder, "podAntiAffinity"):
                    own = self.value(name, rule["topologyKey"])
                    if meets(rule, met) and own is not None and own == self.value(at, rule["topologyKey"]):
                        return False
        return True

    def affinity(self, manifest: Object, name: str) -> bool:
        """Tell whether the domain has whom the pod must be near, or whether it is the first of its kind."""
        for rule in terms(manifest, "podAffinity"):
            own = self.value(name, rule["topologyKey"])
            if own is None:
                return False
            where = {self.value(at, rule["topologyKey"]) for at, other in self.on if meets(rule, other)} - {None}
            if own not in where and (where or not meets(rule, manifest)):
                return False
        return True


def terms(manifest: Object, kind: str) -> list[Object]:
    """Return required terms."""
    rules = manifest["spec"].get("affinity", {}).get(kind, {})
    required: list[Object] = rules.get("requiredDuringSchedulingIgnoredDuringExecution", [])
    return required


def meets(rule: Object, manifest: Object) -> bool:
    """Tell whether a term is about a pod; all are of one namespace here."""
    own = manifest["metadata"].get("labels", {})
    return all(own.get(key) == value for key, value in rule["labelSelector"]["matchLabels"].items())


def ports(manifest: Object) -> list[tuple[str, int]]:
    """Return the ports of the node that a pod takes, each at an address or at all."""
    taken = [port for container in manifest["spec"]["containers"] for port in container.get("ports", [])]
    return [(port.get("hostIP", ""), port["hostPort"]) for port in taken]


def amount(manifest: Object, resource: str) -> int:
    """Return what a pod asks of a resource; MiB, cores and pieces are whole numbers here."""
    if resource == "pods":
        return 1
    return int(manifest["spec"]["containers"][0]["resources"]["limits"].get(resource, 0))


def random_pod(rng: random.Random, name: str, gang: str | None) -> Object:
    """Return a pod with some rules."""
    labels = {"app": rng.choice("abc"), **({"jobset.sigs.k8s.io/jobset-name": gang} if gang else {})}
    asks = {"cpu": str(rng.choice([0, 1, 2])), "memory": str(rng.choice([0, 2**20])), "nvidia.com/gpu": "0"}
    asks["nvidia.com/gpu"] = str(rng.choice([0, 1, 1, 2]))
    more: Object = {}
    if rng.random() < 0.2:
        asks[CARD] = "1"
    if rng.random() < 0.2:
        asks[STORAGE] = str(2**20)
    if rng.random() < 0.35:
        rule = rng.choice([apart, near])
        more["affinity"] = rule(term({"app": rng.choice("abc")}, rng.choice([HOSTNAME, ZONE])))
    if rng.random() < 0.3:
        more["tolerations"] = [{"key": "t", "operator": "Exists", "effect": "NoSchedule"}]
    if rng.random() < 0.15:
        more["nodeSelector"] = {ZONE: rng.choice("xy")}
    manifest = pod(name, labels=labels, asks={key: value for key, value in asks.items() if value != "0"}, **more)
    if rng.random() < 0.25:
        port = {
            "containerPort": 1,
            "hostPort": rng.choice([80, 90]),
            "hostIP": rng.choice(["", "10.0.0.1", "10.0.0.2"]),
        }
        manifest["spec"]["containers"][0]["ports"] = [port]
    return manifest


def random_cluster(seed: int) -> tuple[list[Object], list[Object], list[Object]]:
    """Return nodes, pods that run, each where the filters let it, and pods that wait, some of them gangs."""
    rng = random.Random(seed)
    nodes = []
    for i in range(rng.randint(2, 4)):
        labels = {HOSTNAME: f"n{i}", **({ZONE: rng.choice("xy")} if rng.random() < 0.85 else {})}
        taints = [{"key": "t", "effect": "NoSchedule"}] if rng.random() < 0.2 else []
        has = {"cpu": "6", "memory": str(2**22), "pods": str(rng.choice([3, 9])), CARD: str(rng.choice([0, 1, 4]))}
        has[STORAGE] = str(2**20 * rng.choice([1, 3]))
        made = node(f"n{i}", str(rng.choice([0, 2, 4])), labels=labels, taints=taints, has=has)
        made["spec"]["unschedulable"] = rng.random() < 0.1
        nodes.append(made)
    scheduler = Scheduler(nodes)
    running: list[Object] = []
    for i in range(rng.randint(0, 4)):
        manifest, where = random_pod(rng, f"r{i}", None), f"n{rng.randrange(len(nodes))}"
        if scheduler.fits(manifest, where):
            manifest["spec"]["nodeName"] = where
            scheduler.bind(manifest, where)
            running.append(manifest)
    waiting = []
    for i in range(rng.randint(1, 5)):
        gang = f"g{i}" if rng.random() < 0.3 else None
        first = random_pod(rng, f"w{i}", gang)
        waiting += [{**first, "metadata": {**first["metadata"], "name": f"w{i}-{k}"}} for k in range(3 if gang else 1)]
    return nodes, running, waiting
