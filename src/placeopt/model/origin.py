"""What jobs, their workers and nodes are called in the system that they come from."""

from placeopt.model.base import LongName, Record


class Origin(Record):
    """A worker or a node in the system that it comes from. Nothing of it decides where a job may run."""

    name: LongName
    """Its name there; of a pod ``NAMESPACE/NAME``, of a job what its owner chose, perhaps for several."""
    id: LongName | None = None
    """Identifier that no other one ever has: the job id of Slurm, the UID of Kubernetes."""


class JobOrigin(Origin):
    """A job in the system that it comes from."""

    workers: tuple[Origin, ...] = ()
    """Its workers by rank, where that system has names for them; in Kubernetes its pods."""

    @property
    def names(self) -> frozenset[str]:
        """All names and identifiers, of the workers too."""
        told = [text for one in (self, *self.workers) for text in (one.name, one.id)]
        return frozenset(text for text in told if text is not None)
