"""Generate, solve and check by commands."""

import subprocess
import sys

for line in (
    "generate --spec uniform --jobs 5 --nodes 2 --gpus 4 --out round.json",
    "solve round.json --out plan.json",
    "check round.json plan.json",
):
    subprocess.run([sys.executable, "-m", "placeopt.cli", *line.split()], check=True)
