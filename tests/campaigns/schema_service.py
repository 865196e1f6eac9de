"""
Schemathesis against a live service: requests made from its OpenAPI description, right ones and wrong ones.

``python tests/campaigns/schema_service.py --schemathesis PATH [--examples N] [--seed N]`` starts ``placeopt serve``
with a cluster on a free port, runs the program and writes ``out/schema_service.md``. It fails at any status of 500;
503 is the answer to load (rounds that wait), and stands apart.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from placeopt import __version__, generate
from placeopt.formats.documents import dumps

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "schema_service.md"


def main() -> int:
    """Run the campaign; return 1 at a server error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemathesis", default="schemathesis", help="The program; it is not among the dependencies.")
    parser.add_argument("--examples", type=int, default=50, help="Requests for each call and kind.")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
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
                        *(arguments.schemathesis, "run", f"{base}/openapi.json", "--checks", "not_a_server_error"),
                        *("--max-examples", str(arguments.examples), "--seed", str(arguments.seed), "--no-color"),
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
            faults = service.communicate()[1].count("a call failed")
    print(run.stdout[-6000:], run.stderr[-2000:])
    busy = len(re.findall(r"^\[503\]", run.stdout, re.MULTILINE))
    others = len(re.findall(r"^\[5\d\d\]", run.stdout, re.MULTILINE)) - busy
    errors = max(faults, others)  # the program names each kind once, the service logs every one
    generated = re.search(r"([\d,]+) generated", run.stdout)
    tested = re.search(r"Tested:\s+(\d+)", run.stdout)
    rows = [
        "# Schemathesis against the service\n",
        f"`python tests/campaigns/schema_service.py --examples {arguments.examples} --seed {arguments.seed}`, placeopt "
        f"{__version__}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs.\n",
        "| calls tested | requests | status 500 | calls with 503 (load) | alive at the end | exit code |",
        "|---|---|---|---|---|---|",
        f"| {tested[1] if tested else '?'} | {generated[1] if generated else '?'} | {errors} | {busy} | "
        f"{'yes' if alive else 'no'} | {service.returncode} |",
        "\n503 is the answer to load, such as a ninth round that would wait, and not counted as a fault; 143 is that "
        "of a service that ended by SIGTERM, which the campaign sends at the end.",
    ]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return int(errors > 0 or not alive)


if __name__ == "__main__":
    sys.exit(main())
