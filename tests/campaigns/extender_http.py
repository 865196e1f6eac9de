"""
kube-scheduler's calls over HTTP, 1,000 pods a seed, on a service that is restarted in between.

``python tests/campaigns/extender_http.py [--seeds 0-2] [--pods N] [--nodes N]`` writes ``out/extender_http.md``. It
fails at a pod that is bound twice, an untrue reason, a snapshot that a restart changes, or one that the referee
refuses.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.kube_scheduler import Bindings, node  # noqa: E402
from helpers.kube_scheduler_run import Run, overfull  # noqa: E402
from placeopt import __version__  # noqa: E402
from placeopt.formats.documents import dumps  # noqa: E402
from placeopt.formats.kubernetes.snapshot import read_kubernetes  # noqa: E402
from placeopt.model import Instance  # noqa: E402
from placeopt.service.http.listen_address import parse_address  # noqa: E402
from placeopt.service.http.server import HttpServer  # noqa: E402
from placeopt.service.service import Service  # noqa: E402

OUT = ROOT / "out" / "extender_http.md"
PARTS = 5
"""Of a run; the service is restarted after each."""


def main() -> int:
    """Run the campaign; return 1 at a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-2", help="First and last seed.")
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=300)
    arguments = parser.parse_args()
    first, last = map(int, arguments.seeds.split("-"))
    rows, wrong = [], 0
    for seed in range(first, last + 1):
        row, faults = one_run(seed, arguments.pods, arguments.nodes)
        rows.append(row)
        wrong += len(faults)
        print(row, *faults[:5], sep="\n", flush=True)
    command = f"--seeds {arguments.seeds} --pods {arguments.pods} --nodes {arguments.nodes}"
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(page(command, rows), encoding="utf-8")
    return 1 if wrong else 0


def one_run(seed: int, pods: int, nodes: int) -> tuple[str, list[str]]:
    """Return the row of a seed, and what was wrong."""
    bindings, began = Bindings(), _cpu_s()
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        where = parse_address(f"unix:{folder}/s", has_tokens=False)
        cluster = dumps(read_kubernetes([node(f"n{i}") for i in range(nodes)]))
        draw, run, snapshot = random.Random(seed), None, b""
        faults: list[str] = []
        for part in range(PARTS + 1):
            with Service(Path(folder) / "state", binder=bindings) as service:
                if part == 0:
                    service.call("put_cluster", cluster)
                elif service.call("snapshot") != snapshot:
                    faults.append(f"restart {part}: another snapshot")
                if part < PARTS:
                    with HttpServer(service, where) as server:
                        path = str(server.address).removeprefix("unix:")
                        client = httpx.Client(
                            transport=httpx.HTTPTransport(uds=path), base_url="http://localhost", timeout=600
                        )
                        with client:
                            run = run or Run(client, draw, pods=pods, nodes=nodes)
                            run.client = client
                            run.seconds = seconds
                            run.go(part / PARTS, (part + 1) / PARTS)
                snapshot = service.call("snapshot")
    assert run is not None
    faults += run.faults

    faults += overfull(Instance.model_validate_json(snapshot), bindings.node_of, run.pods)
    figures = " | ".join(
        f"{_share(seconds[verb], 50):.1f} | {_share(seconds[verb], 99):.1f}"
        for verb in ("filter", "prioritize", "bind")
    )
    return (
        f"| {seed} | {len(run.pods)} | {run.calls} | {len(bindings.node_of)} | {run.reasons} | {figures} | "
        f"{_cpu_s() - began:.0f} | {len(faults)} |",
        faults,
    )


def page(command: str, rows: list[str]) -> str:
    """Return the page."""
    return "\n".join(
        [
            "# kube-scheduler's extender over HTTP",
            "",
            f"`python tests/campaigns/extender_http.py {command}`: the calls that kube-scheduler sends, one after the "
            "other, over a unix socket; the journal on disk. Four pods in ten are of gangs of 4, their pods out of "
            "order; a bind in five is sent twice, a pod in five comes again, and one in ten is refused by another "
            f"plugin. The service is restarted {PARTS} times, and its snapshot has to have the same bytes. Reasons: "
            "nodes of calls of filter whose answer was compared with a count of free GPUs from the snapshot alone. "
            "Faults: a pod bound twice or elsewhere, an untrue reason, another snapshot, what the referee refuses. "
            "Milliseconds are wall time at the client, which shares the machine with the service and with others.",
            "",
            f"{os.cpu_count()} CPUs ({platform.machine()}), Python {platform.python_version()}, "
            f"placeopt {__version__}.",
            "",
            "| seed | pods | calls | bound | reasons | filter p50 ms | p99 | prioritize p50 ms | p99 | bind p50 ms "
            "| p99 | CPU seconds | faults |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _share(seconds: list[float], percent: int) -> float:
    """Return a percentile in milliseconds."""
    return sorted(seconds)[min(len(seconds) - 1, len(seconds) * percent // 100)] * 1000


def _cpu_s() -> float:
    return time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


if __name__ == "__main__":
    sys.exit(main())
