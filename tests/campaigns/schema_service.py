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
import urllib.request
from collections.abc import Iterator
from itertools import count

from campaigns.harness import Campaign, Case
from placeopt import generate
from placeopt.formats import dumps

PROGRAM = shutil.which("schemathesis") or shutil.which("schemathesis", path=os.path.dirname(sys.executable))
REQUESTS = 50
"""Of each call and kind."""


def cases(seed: int) -> Iterator[Case]:
    """Run the program with one seed after the other."""
    for number in count(seed):
        yield one_run(number)


def one_run(seed: int) -> Case:
    """Start a service, and let the program ask it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "placeopt.cli", "serve", "--listen", "127.0.0.1:0", "--state", folder]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
            try:
                assert service.stderr is not None
                base = "http://" + service.stderr.readline().split()[3].rstrip(";")
                round_ = dumps(generate("preempt", jobs=12, nodes=4, gpus=4, seed=0))
                request = urllib.request.Request(  # noqa: S310 - on loopback
                    f"{base}/v1/cluster", round_, {"content-type": "application/json"}, method="PUT"
                )
                urllib.request.urlopen(request).close()  # noqa: S310
                run = subprocess.run(
                    [
                        *(str(PROGRAM), "run", f"{base}/openapi.json", "--checks", "not_a_server_error"),
                        *("--max-examples", str(REQUESTS), "--seed", str(seed), "--no-color"),
                        *("--request-timeout", "70"),  # calls wait for events up to 25 s
                        *("--phases", "examples,coverage,fuzzing"),
                    ],
                    cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "100"},
                )  # fmt: skip
            except BaseException:
                service.kill()  # nothing else ends it, and leaving the block waits for its end
                raise
            alive = service.poll() is None
            service.terminate()
            logged = service.communicate()[1].count("a call failed")
    busy = len(re.findall(r"^\[503\]", run.stdout, re.MULTILINE))
    others = len(re.findall(r"^\[5\d\d\]", run.stdout, re.MULTILINE)) - busy
    errors = max(logged, others)  # the program names each kind once, the service logs every one
    faults = [f"seed {seed}: {errors} times status 500\n{run.stdout[-4000:]}"] if errors else []
    if not alive:
        faults.append(f"seed {seed}: the service ended by {service.returncode}")
    generated = re.search(r"([\d,]+) generated", run.stdout)
    figures = {"requests": float(generated[1].replace(",", "")) if generated else 0.0, "busy": float(busy)}
    return Case("run", faults, figures)


CAMPAIGN = Campaign(
    "does no request made from the description end in a server error?",
    cases,
    3,
    missing=lambda: None if PROGRAM else "schemathesis is not installed",
)
