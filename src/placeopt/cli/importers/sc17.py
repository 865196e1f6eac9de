"""``placeopt import sc17``: a workload of the artifact of SC'17's topology-aware scheduling paper as a scenario."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.importers.importer import INPUT, Imported, Importer, imported_scenario


def sc17(
    workload: Annotated[str, typer.Option(metavar="JSON", help="Jobs, for instance workloads-5.json."), INPUT],
    infrastructure: Annotated[str, typer.Option(metavar="JSON", help="The machine: infra-1m.json."), INPUT],
    profile: Annotated[str, typer.Option(metavar="JSON", help="Measured times: prof_from_experiments.json."), INPUT],
    machines: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Machines of the cluster.")] = 1,
) -> Imported:
    """Read a workload of the artifact of SC'17's topology-aware scheduling paper as a scenario to simulate."""
    from placeopt.formats.sc17 import read_sc17

    scenario = read_sc17(workload, infrastructure, profile, machines=machines)
    return imported_scenario(scenario, unit="machine", notes=scenario.note.partition("\n")[2])


SC17 = Importer(
    "sc17",
    sc17,
    "scenario",
    "placeopt import sc17 --workload w.json --infrastructure i.json --profile p.json --out s.json",
)
