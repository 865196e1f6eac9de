"""A cluster of the tests, and drivers that are connected to it."""

import threading
import time

import pytest

from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import Cluster, node, write_kubeconfig
from placeopt import Engine
from placeopt.drivers.kubernetes import Api, Driver, KubernetesOptions

PATIENCE_S = 60.0


def until(holds):
    """Wait for something that other threads bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def write_of(path, body):
    """Kind of a write to a pod, and the pod: its lift is the patch that removes its gate, its record any other."""
    kind = "eviction" if path.endswith("/eviction") else "lift" if "spec" in body else "record"
    return kind, path.partition("/pods/")[2].partition("/")[0]


def _versions(objects):
    return [(found["metadata"]["uid"], found["metadata"]["resourceVersion"]) for found in objects]


class Driven:
    """A driver that takes its turns when told, and only when it has seen all that the server has."""

    def __init__(self, api, config, options):
        self.api, self.stop, self.engine = api, threading.Event(), Engine()
        self.driver = Driver(Api(str(config)), self.engine, options, self.stop)

    def turn(self):
        self.catch_up()
        return self.driver.turn()

    def catch_up(self):
        mirror = self.driver.mirror
        until(lambda: _versions(mirror.nodes.objects) == _versions(self.api.all("nodes")))
        until(lambda: _versions(mirror.pods.objects) == _versions(self.api.all("pods")))

    def close(self):
        self.stop.set()
        self.api.cut_watches()
        self.engine.close()


class World:
    """An API server with what surrounds it, and drivers; everything takes its turns when the test says so."""

    def __init__(self, api, folder):
        self.api, self.cluster, self.config = api, Cluster(api), folder / "kubeconfig.json"
        self.submit, self.drivers = self.cluster.submit, []
        write_kubeconfig({"server": api.url}, self.config)

    def connect(self, **options):
        """Start a driver; fields of `KubernetesOptions` may be given."""
        self.drivers.append(
            Driven(self.api, self.config, KubernetesOptions(**{"every_s": 5.0, "settle_s": 0.0, **options}))
        )
        return self.drivers[-1]

    def add_nodes(self, *names, gpus=8):
        for name in names:
            self.api.add("nodes", node(name, gpus))

    def settle(self):
        """Pods without gates are bound, and then run."""
        self.cluster.turn()
        self.cluster.turn()

    def turns(self, driven, count):
        for _ in range(count):
            driven.turn()
            self.cluster.turn()

    def at(self, kind, name, act, *, always=False):
        """Before a write of a kind to a pod, or to any pod: call a function, or raise an exception; once, or always."""

        def before(method, path, body):
            this, of = write_of(path, body)
            if "/pods/" in path and this == kind and name in (of, None):
                if not always:
                    self.calm()
                if isinstance(act, Exception):
                    raise act
                act()

        self.api.before = before

    def cut(self, number, *, answered):
        """End the connection at a write, counted from 0, before or after it is done; others pass."""
        left = iter([False] * number + [True])

        def cut(method, path, body):
            if next(left, False):
                raise ConnectionResetError

        setattr(self.api, "after" if answered else "before", cut)

    def calm(self):
        self.api.before = self.api.after = lambda method, path, body: None

    def pod(self, name):
        return self.api.get("pods", name)

    def written(self, kind):
        """Pods of the accepted writes of a kind, in order."""
        writes = [write_of(path, body) for _, path, body in self.api.writes if "/pods/" in path]
        return [name for this, name in writes if this == kind]

    def lifted(self):
        return {found["metadata"]["name"] for found in self.api.all("pods") if not found["spec"].get("schedulingGates")}

    def running(self):
        """Where pods run."""
        pods = [found for found in self.api.all("pods") if found["status"]["phase"] == "Running"]
        return {found["metadata"]["name"]: found["spec"]["nodeName"] for found in pods}


@pytest.fixture
def world(tmp_path):
    with KubernetesApi() as api:
        made = World(api, tmp_path)
        yield made
        for one in made.drivers:
            one.close()
