"""One order of arrival of a list of openb, played by policies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from placeopt_papers.one_at_a_time.arrivals import Arrivals, read_arrivals
from placeopt_papers.one_at_a_time.playing import place_by


@dataclass(frozen=True)
class OneAtATime:
    """
    Pods of a list that arrive one after the other in the order of a seed; none leaves and none is tried twice.

    Attributes
    ----------
    folder
        Folder of the stored instances.
    name
        Name of the list.
    seed
        Seed of the authors' simulator, which uses 42 to 51.
    """

    folder: Path
    name: str
    seed: int

    def allocated(self, score: str) -> dict[int, float]:
        """
        Place by a score, see ``place_by``.

        Returns
        -------
        dict
            Percent of the cluster's GPUs that arrived -> percent of them allocated by then.
        """
        arrivals, order = _read(self.folder, self.name).by_seed(self.seed)
        return arrivals.allocated(order, place_by(score, arrivals, order, self.seed))


@cache
def _read(folder: Path, name: str) -> Arrivals:
    return read_arrivals(folder, name)
