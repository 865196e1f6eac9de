"""The table of importers."""

from __future__ import annotations

from placeopt.cli.importers.importer import Importer
from placeopt.cli.importers.jobs import JOBS
from placeopt.cli.importers.openb import OPENB
from placeopt.cli.importers.snapshots import KUBERNETES, SLURM
from placeopt.cli.importers.topo import TOPO

IMPORTERS: dict[str, Importer] = {importer.name: importer for importer in (JOBS, OPENB, SLURM, KUBERNETES, TOPO)}
"""Name -> importer, in the order of the help."""


def register_importer(importer: Importer) -> None:
    """
    Add an importer to ``placeopt import``, or replace the one of that name; see ``docs/extending.md``.

    Parameters
    ----------
    importer
        The importer. `placeopt.cli.run.run` offers it from then on.
    """
    IMPORTERS[importer.name] = importer
