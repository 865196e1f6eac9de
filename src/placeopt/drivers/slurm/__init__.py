"""
The driver for Slurm: rounds that end in ``scontrol update`` and ``scontrol release``.

``commands`` calls Slurm, ``note`` is what a job's admin comment states of it, ``job_view`` and ``reading`` select the
driver's jobs and make a round of them, ``apply`` changes jobs, ``outcomes`` compares what came of it, ``driver`` is the
loop. A `Slurm` of one's own takes the place of the commands.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.drivers.slurm.commands import (
        JobNow,
        Slurm,
        SlurmCommands,
        SlurmReading,
        SlurmRefused,
    )
    from placeopt.drivers.slurm.driver import DriverOptions, SlurmDriver
    from placeopt.drivers.slurm.job_view import Ownership
    from placeopt.drivers.slurm.note import Note, NoteKind, read_note, with_note
    from placeopt.drivers.slurm.restd import ReadThroughRestd
    from placeopt.drivers.slurm.round_record import RoundRecord

__all__ = [
    "DriverOptions",
    "JobNow",
    "Note",
    "NoteKind",
    "Ownership",
    "ReadThroughRestd",
    "RoundRecord",
    "Slurm",
    "SlurmCommands",
    "SlurmDriver",
    "SlurmReading",
    "SlurmRefused",
    "read_note",
    "with_note",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "commands": (
            "JobNow",
            "Slurm",
            "SlurmCommands",
            "SlurmReading",
            "SlurmRefused",
        ),
        "driver": (
            "DriverOptions",
            "SlurmDriver",
        ),
        "job_view": ("Ownership",),
        "note": ("Note", "NoteKind", "read_note", "with_note"),
        "restd": ("ReadThroughRestd",),
        "round_record": ("RoundRecord",),
    },
)
