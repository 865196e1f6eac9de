"""What a round that was read from a resource manager says, briefly enough for one line of a test."""

from placeopt.model import Instance


def waiting(found: Instance) -> set[str]:
    """Return the jobs that wait."""
    return {job.id for job in found.jobs} - {one.job for one in found.running}


def drained(found: Instance) -> list[str]:
    """Return the nodes that take nothing new."""
    return [one.id for one in found.cluster.nodes if one.drained]


def held(found: Instance) -> dict[str, dict[str, list[int]]]:
    """Return the indices of the GPUs of each job that runs, by node."""
    return {one.job: {part.node: [int(gpu) for gpu in part.gpus] for part in one.assignments} for one in found.running}


def left_out(found: Instance, *kinds: str) -> list[str]:
    """Return the notes about waiting jobs that are not in the round, as lines of text; ``kinds``: none: of both."""
    shown = kinds or ("left out", "not eligible")
    return [str(note).partition(", ")[2] for note in found.reading if note.kind in shown]


def notes_of(found: Instance) -> str:
    """Return what the importer says of its reading, a line for each note."""
    return "\n".join(map(str, found.reading))
