"""
A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

Its nodes are `helpers.real_kubelets`. etcd is Debian's ``etcd-server``; the others are looked for in the folder that
the environment variable `FOLDER` names, then on PATH. The driver has the rights of `docs/manifests/driver.yaml` and
no others.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx
import yaml

from helpers.daemons import end_daemon
from helpers.kubernetes_client import RealApi
from helpers.kubernetes_cluster import write_kubeconfig
from helpers.slurm_lab import free_ports

FOLDER = "PLACEOPT_KUBERNETES_BIN"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
MANIFEST = Path(__file__).resolve().parents[2] / "docs" / "manifests" / "driver.yaml"
DRIVER = "system:serviceaccount:placeopt:placeopt"
"""User of the driver, in the audit log."""
STARTS_S = 120.0
GRACE_S = 16
"""After so many seconds without a heartbeat a node is not ready; its pods are evicted `TOLERATED_S` later."""
TOLERATED_S = 2
CONTROLLERS = (
    *("job-controller", "replicaset-controller", "disruption-controller", "garbage-collector-controller"),
    *("serviceaccount-controller", "node-lifecycle-controller", "taint-eviction-controller"),
    *("pod-garbage-collector-controller", "namespace-controller"),
)
AUDIT = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, verbs: [patch], resources: [{group: "", resources: [pods]}]}
- {level: Request, verbs: [create], resources: [{group: "", resources: [pods/eviction, pods/binding]}]}
- {level: None}
"""
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/placeopt/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/placeopt/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/placeopt/rolebindings",
}
"""Kinds of the driver's manifest that are made; its Deployment is the command that the test runs."""


def program(name: str) -> str | None:
    """Return the path of a program, None if it is not here."""
    return shutil.which(name, path=f"{os.environ.get(FOLDER, '')}:{os.environ.get('PATH', '')}")


def why_no_kubernetes() -> str | None:
    """Return why no Kubernetes can be started here, None if it can."""
    missing = [name for name in PROGRAMS if program(name) is None]
    if not missing:
        return None
    return f"Kubernetes is not installed here ({', '.join(missing)} missing on PATH and in the folder ${FOLDER})"


class KubernetesLab:
    """
    A running control plane, a context manager.

    ``api``: A client with all rights. ``kubeconfig``: The driver's.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kubernetes-lab-"))
        self.kubeconfig = self.folder / "driver.json"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._etcd, self._peers, self._port, *self._others = free_ports(5)
        self._token = os.urandom(16).hex()
        self.api: RealApi

    def __enter__(self) -> Self:
        """Start all daemons, and wait until the service account of pods is there."""
        try:
            self._configure()
            for name in PROGRAMS[:2]:
                self.start(name)
            self._wait(lambda: (self.folder / "certificates" / "apiserver.crt").exists(), "kube-apiserver")
            self.api = self.client(self._token)
            self._write_kubeconfig(self.folder / "admin.json", self._token)
            self.wait_ready()
            for name in PROGRAMS[2:]:
                self.start(name)
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self._wait(lambda: self.api.exists(account), "kube-controller-manager")
            self._admit_driver()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End all daemons, and remove the folder."""
        for name in reversed(PROGRAMS):
            if name in self._daemons:
                self.stop(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def client(self, token: str) -> RealApi:
        """Return a client of the API server."""
        trusted = ssl.create_default_context(cafile=str(self.folder / "certificates" / "apiserver.crt"))
        url = f"https://127.0.0.1:{self._port}"
        return RealApi(httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, verify=trusted))

    def start(self, name: str) -> None:
        """Start a daemon."""
        words = [f"--{key}={value}" for key, value in self._options(name).items()]
        with (self.folder / f"{name}.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [program(name) or name, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        """End a daemon."""
        end_daemon(self._daemons.pop(name), number)

    def pause(self, name: str, seconds: float) -> None:
        """Let a daemon stand still: connections to it stay open, and nothing answers."""
        self._daemons[name].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._daemons[name].send_signal(signal.SIGCONT)

    def restart_server(self) -> None:
        """Kill the API server, and start it anew: connections are refused until it is there."""
        self.stop("kube-apiserver", signal.SIGKILL)
        self.start("kube-apiserver")
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the API server is ready."""
        self._wait(lambda: self.api.exists("/readyz"), "kube-apiserver")

    def audit(self) -> list[dict[str, Any]]:
        """Return the requests that `AUDIT` names, in the order in which they were answered."""
        lines = (self.folder / "audit.log").read_text(encoding="utf-8").splitlines()
        return sorted(map(json.loads, lines), key=lambda event: str(event["stageTimestamp"]))

    def _options(self, name: str) -> dict[str, object]:
        folder, admin, loopback = self.folder, self.folder / "admin.json", "127.0.0.1"
        if name == "etcd":
            url, peers = f"http://{loopback}:{self._etcd}", f"http://{loopback}:{self._peers}"
            urls = {"listen-client-urls": url, "advertise-client-urls": url, "listen-peer-urls": peers}
            peer = {"initial-advertise-peer-urls": peers, "initial-cluster": f"default={peers}"}
            return {"data-dir": folder / "etcd", **urls, **peer}
        if name == "kube-apiserver":
            return {
                "etcd-servers": f"http://{loopback}:{self._etcd}",
                "bind-address": loopback,
                "secure-port": self._port,
                "endpoint-reconciler-type": "none",
                "cert-dir": folder / "certificates",
                "service-cluster-ip-range": "10.0.0.0/24",
                "service-account-issuer": "https://kubernetes.default.svc",
                "service-account-key-file": folder / "accounts.key",
                "service-account-signing-key-file": folder / "accounts.key",
                "token-auth-file": folder / "tokens.csv",
                "authorization-mode": "RBAC",
                "audit-policy-file": folder / "audit.yaml",
                "audit-log-path": folder / "audit.log",
                "audit-log-mode": "blocking",
                "default-not-ready-toleration-seconds": TOLERATED_S,
                "default-unreachable-toleration-seconds": TOLERATED_S,
            }
        if name == "kube-controller-manager":
            own = {"controllers": ",".join(CONTROLLERS), "service-account-private-key-file": folder / "accounts.key"}
            own |= {"node-monitor-period": "1s", "node-monitor-grace-period": f"{GRACE_S}s"}
        else:
            own = {"authentication-tolerate-lookup-failure": "true"}
        port = self._others[name == "kube-scheduler"]
        shared = {"kubeconfig": admin, "leader-elect": "false", "bind-address": loopback, "secure-port": port}
        return {**shared, "cert-dir": folder / name, **own}

    def _configure(self) -> None:
        (self.folder / "audit.yaml").write_text(AUDIT)
        (self.folder / "tokens.csv").write_text(f'{self._token},admin,admin,"system:masters"\n')
        key = ("openssl", "genrsa", "-out", str(self.folder / "accounts.key"), "2048")
        subprocess.run(key, capture_output=True, check=True)

    def _write_kubeconfig(self, path: Path, token: str) -> None:
        server = {"server": f"https://127.0.0.1:{self._port}"}
        server["certificate-authority"] = str(self.folder / "certificates" / "apiserver.crt")
        write_kubeconfig(server, path, token=token)

    def _admit_driver(self) -> None:
        """Make what the driver's manifest has, and a token of its service account."""
        for made in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")):
            if made["kind"] in PATHS:
                self.api.create(PATHS[made["kind"]], made)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
        answer = self.api.create(f"{PATHS['ServiceAccount']}/placeopt/token", asked)
        self._write_kubeconfig(self.kubeconfig, answer["status"]["token"])

    def _wait(self, holds: Callable[[], bool], name: str) -> None:
        ends = time.monotonic() + STARTS_S
        while time.monotonic() < ends:
            with suppress(httpx.HTTPError):
                if holds():
                    return
            if self._daemons[name].poll() is not None:
                break
            time.sleep(0.2)
        end = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
        raise TimeoutError(f"{name} has not started: {end}")
