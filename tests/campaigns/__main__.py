"""
Try a property or a campaign for as long as wanted.

    PYTHONPATH=tests python -m campaigns NAME ...|all [--examples N] [--minutes M] [--seed N] [--workers N]
        [--out FILE]

A property is a file of ``tests/properties/``: it is run under Hypothesis' profile ``night``, in batches of new
examples; a failing one is shrunk and printed. A campaign is a module of this folder. Each adds a line to
``bench/results/campaigns.jsonl``. Ends with code 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

from campaigns.harness import RESULTS, ROOT, Campaign, Case, run, write_down

sys.path.append(str(ROOT / "bench"))  # `made_rounds`, as under pytest
HERE = Path(__file__).parent
PROPERTIES = {path.stem.removeprefix("test_"): path for path in sorted((HERE.parent / "properties").glob("test_*.py"))}
CAMPAIGNS = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in ("__main__", "harness"))
BATCH = 100
"""Examples of a property in one process, which starts anew with another seed: the clock is looked at in between."""


def property_campaign(name: str, examples: int, workers: int) -> Campaign:
    """Return a property as a campaign: each case is a batch of examples."""
    return Campaign(name, partial(batches, PROPERTIES[name], min(BATCH, examples), workers), -(-examples // BATCH))


def batches(path: Path, examples: int, workers: int, seed: int) -> Iterator[Case]:
    """Run the tests of a property again and again, each time with the next seed."""
    while True:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", str(path), "-q", "-x", "--hypothesis-profile=night"),
                *(f"--hypothesis-seed={seed}", f"-n{workers}"),
            ],
            cwd=ROOT,
            env={**os.environ, "PLACEOPT_EXAMPLES": str(examples)},
            capture_output=True,
            text=True,
            check=False,
        )
        faults = [] if done.returncode == 0 else [f"seed {seed}: {done.stdout[-6000:]}{done.stderr[-1000:]}"]
        yield Case(f"batches of {examples}", faults)
        seed += 1


def main() -> int:
    """Run what is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help=f"all, or {', '.join([*PROPERTIES, *CAMPAIGNS])}")
    parser.add_argument("--examples", type=int, help="of each; default: 25,000 of a property, a campaign's own number")
    parser.add_argument("--minutes", type=float, help="for each, at most; default: 30, or a campaign's own")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10**6), help="default: a new one, which is printed"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes for a property")
    parser.add_argument("--out", type=Path, default=RESULTS, help="file that takes a line for each")
    options = parser.parse_args()
    names = [*PROPERTIES, *CAMPAIGNS] if options.names == ["all"] else options.names
    if unknown := set(names) - {*PROPERTIES, *CAMPAIGNS}:
        parser.error(f"{min(unknown)!r} is neither a property nor a campaign")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background, and by what is started there
    wrong = 0
    for name in names:
        if name in PROPERTIES:
            campaign = property_campaign(name, options.examples or 25_000, options.workers)
            examples = campaign.examples
        else:
            campaign = import_module(f"campaigns.{name}").CAMPAIGN
            examples = options.examples or campaign.examples
        if (reason := campaign.missing()) is not None:
            print(f"{name}: skipped, {reason}", flush=True)
            continue
        print(f"{name}: {campaign.question} (seed {options.seed})", flush=True)
        began = time.monotonic()
        result = run(campaign, examples, options.minutes or campaign.minutes, options.seed)
        write_down(name, result, options.seed, time.monotonic() - began, options.out)
        print(f"{name}: {dict(result.kinds)}, {len(result.faults)} faults", flush=True)
        wrong += bool(result.faults)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
