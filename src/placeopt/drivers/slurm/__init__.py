"""
The driver for Slurm: rounds that end in ``scontrol update`` and ``scontrol release``.

``commands`` calls Slurm, ``note`` is what a job's admin comment states of it, ``job_view`` and ``reading`` select the
driver's jobs and make a round of them, ``apply`` changes jobs, ``outcomes`` compares what came of it, ``driver`` is the
loop. A `Slurm` of one's own takes the place of the commands.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.drivers.slurm.commands import JobNow as JobNow
    from placeopt.drivers.slurm.commands import Slurm as Slurm
    from placeopt.drivers.slurm.commands import SlurmCommands as SlurmCommands
    from placeopt.drivers.slurm.commands import SlurmReading as SlurmReading
    from placeopt.drivers.slurm.commands import SlurmRefused as SlurmRefused
    from placeopt.drivers.slurm.driver import SlurmDriver as SlurmDriver
    from placeopt.drivers.slurm.driver import SlurmOptions as SlurmOptions
    from placeopt.drivers.slurm.job_view import Ownership as Ownership
    from placeopt.drivers.slurm.note import Note as Note
    from placeopt.drivers.slurm.note import NoteKind as NoteKind
    from placeopt.drivers.slurm.note import read_note as read_note
    from placeopt.drivers.slurm.note import with_note as with_note

__getattr__, __dir__ = lazy_names(__name__)
