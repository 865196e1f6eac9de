"""Write ``instances/papers/dynamoml-30min-12.json`` and ``-16.json``: ``python bench/paper_scenarios_dynamoml.py``."""

from __future__ import annotations

from pathlib import Path

from placeopt import write_scenario
from placeopt_papers.scenarios.dynamoml import dynamoml_scenario

FOLDER = Path(__file__).parents[1] / "instances" / "papers"


def main() -> None:
    """Write both, with seed 0."""
    for jobs in (12, 16):
        scenario = dynamoml_scenario(jobs=jobs)
        write_scenario(FOLDER / f"{scenario.name}.json", scenario)


if __name__ == "__main__":
    main()
