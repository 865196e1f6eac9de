"""
Schemathesis against a live service: requests made from its OpenAPI description, right ones and wrong ones.

``placeopt serve`` with a cluster listens on a free port. Faults: a status of 500, and a service that is gone at the
end; 503 is the answer to load (rounds that wait).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from campaigns.harness import Campaign, Case
from helpers.served import Served
from placeopt import generate

PROGRAM = shutil.which("schemathesis") or shutil.which("schemathesis", path=os.path.dirname(sys.executable))
ROUND = generate("preempt", jobs=12, nodes=4, gpus=4, seed=0)
REQUESTS = 50
"""Of each call and kind."""


def cases(seed: int) -> Iterator[Case]:
    """Run the program with one seed after the other."""
    for number in count(seed):
        yield one_run(number)


def one_run(seed: int) -> Case:
    """Start a service, and let the program ask it."""
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder), "--state", folder) as served:
        served.load(ROUND)
        admin = served.client("admin")
        run = subprocess.run(
            [
                *(str(PROGRAM), "run", f"{admin.base_url}/openapi.json", "--checks", "not_a_server_error"),
                *("--header", f"authorization: {admin.headers['authorization']}"),
                *("--phases", "examples,coverage,fuzzing", "--max-examples", str(REQUESTS), "--seed", str(seed)),
                *("--no-color", "--request-timeout", "70"),  # calls wait for events up to 25 s
            ],
            cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "100"},
        )  # fmt: skip
        service = served.process
        alive = service.poll() is None
        service.terminate()
        logged = service.communicate()[1].count(b"a call failed")
    busy = len(re.findall(r"^\[503\]", run.stdout, re.MULTILINE))
    others = len(re.findall(r"^\[5\d\d\]", run.stdout, re.MULTILINE)) - busy
    errors = max(logged, others)  # the program names each kind once, the service logs every one
    faults = [f"seed {seed}: {errors} times status 500\n{run.stdout[-4000:]}"] if errors else []
    if not alive:
        faults.append(f"seed {seed}: the service ended by {service.returncode}")
    if run.returncode not in (0, 1):  # 1: it has found something
        faults.append(f"seed {seed}: the program ended by {run.returncode}: {run.stderr[-1000:]}")
    generated = re.search(r"([\d,]+) generated", run.stdout)
    figures = {"requests": float(generated[1].replace(",", "")) if generated else 0.0, "busy": float(busy)}
    return Case("run", faults, figures)


CAMPAIGN = Campaign(
    "does no request made from the description end in a server error?",
    cases,
    3,
    missing=lambda: None if PROGRAM else "schemathesis is not installed",
)
