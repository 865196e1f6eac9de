"""A reading of a live cluster as a round to judge: what may be changed is what its jobs allow."""

from __future__ import annotations

from placeopt.arguments import checked
from placeopt.edits import edit_instance
from placeopt.judge.rounds import may_be_changed
from placeopt.model import Changes, Instance


@checked
def live_round(instance: Instance) -> Instance:
    """
    Return a reading whose policy allows as many changes as its jobs do.

    Resource managers state for each job whether it may be moved or stopped, but no number of changes; the policies of
    their readers allow none, so that a round in which no change was asked for changes nothing.

    Parameters
    ----------
    instance
        As `placeopt.importers.read_kubernetes`, `read_kai` or `read_slurm` returns it.
    """
    changeable = sum(map(may_be_changed, instance.running))
    changes = Changes(moves_max=changeable, preemptions_max=changeable, shrinks_max=changeable)
    return edit_instance(instance, policy=instance.policy.model_copy(update={"changes": changes}))
