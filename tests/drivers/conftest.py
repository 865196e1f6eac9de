"""A cluster of the tests, and drivers that are connected to it."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import Cluster, Object, write_kubeconfig
from placeopt import Engine
from placeopt.drivers import RoundReport
from placeopt.drivers.kubernetes import Api, Driver, DriverOptions

PATIENCE_S = 60.0


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that other threads bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def _versions(objects: list[Object]) -> list[tuple[str, str]]:
    return [(found["metadata"]["uid"], found["metadata"]["resourceVersion"]) for found in objects]


class Driven:
    """A driver that takes its turns when told, and only when it has seen all that the server has."""

    def __init__(self, api: KubernetesApi, config: Path, options: DriverOptions) -> None:
        self.api, self.stop, self.engine = api, threading.Event(), Engine()
        self.driver = Driver(Api(str(config)), self.engine, options, self.stop)

    def turn(self) -> RoundReport:
        self.catch_up()
        return self.driver.turn()

    def catch_up(self) -> None:
        mirror = self.driver.mirror
        until(lambda: _versions(mirror.nodes.objects) == _versions(self.api.all("nodes")))
        until(lambda: _versions(mirror.pods.objects) == _versions(self.api.all("pods")))

    def close(self) -> None:
        self.stop.set()
        self.api.cut_watches()
        self.engine.close()


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with KubernetesApi() as server:
        yield server


@pytest.fixture
def cluster(api: KubernetesApi) -> Cluster:
    """What surrounds the server; a test calls ``turn``, or enters it as a context for a thread that does."""
    return Cluster(api)


@pytest.fixture
def config(api: KubernetesApi, tmp_path: Path) -> Path:
    """A kubeconfig file of the server."""
    path = tmp_path / "kubeconfig.json"
    write_kubeconfig(api, path)
    return path


@pytest.fixture
def connect(api: KubernetesApi, config: Path) -> Iterator[Callable[..., Driven]]:
    """Make drivers; fields of `DriverOptions` may be given."""
    made: list[Driven] = []

    def call(**options: Any) -> Driven:
        given: dict[str, Any] = {"every_s": 5.0, "settle_s": 0.0, **options}
        made.append(Driven(api, config, DriverOptions(**given)))
        return made[-1]

    yield call
    for one in made:
        one.close()
