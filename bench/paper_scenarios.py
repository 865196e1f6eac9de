"""
Writes the papers' drawn settings into ``instances/papers``: ``python bench/paper_scenarios.py [--traces DIR]``.

Seed 0, in full size, as ``placeopt bench papers`` has them; other seeds: ``placeopt generate --scenario``. DIR holds
``traces/philly.csv.gz``; without it the day of Philly is not written. The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from placeopt import write_scenario
from placeopt.model import Scenario
from placeopt_papers.catalogue import SETTINGS

FOLDER = Path(__file__).parents[1] / "instances" / "papers"
DRAWN = (
    "sc17-table-1", "sc17-100x5", "sc17-10kx1k",
    "horus-w-small", "horus-w-large", "horus-trace",
    "genie-5", "genie-10", "genie-20", "genie-15", "genie-25", "genie-classes-10-40-50", "genie-classes-20-40-40",
    "genie-hours-12", "genie-hours-48", "genie-gpus-32", "genie-gpus-64", "genie-gpus-128",
)  # fmt: skip
"""Settings without a trace of others and without a script of their own."""


def made(name: str, folder: Path) -> Scenario:
    """Return a setting with seed 0, in full size."""
    scenario = SETTINGS[name].make(0, folder, True)
    assert isinstance(scenario, Scenario)
    return scenario


def main() -> None:
    """Write them, by their names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, help="folder that holds traces/philly.csv.gz")
    traces = parser.parse_args().traces
    scenarios = [made(name, FOLDER.parent) for name in DRAWN]
    if traces is not None:
        scenarios.append(made("philly", traces))
    for scenario in scenarios:
        path = FOLDER / f"{scenario.name}.json.gz"
        write_scenario(path, scenario)
        print(f"{path.stat().st_size:>9}  {path.name}: {len(scenario.arrivals):,} jobs")


if __name__ == "__main__":
    main()
