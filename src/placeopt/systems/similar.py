"""How alike two networks are: what was measured of one then stands for another, of which nothing was measured."""

from __future__ import annotations

from collections.abc import Mapping

from placeopt.errors import BadInput

Structure = Mapping[str, float]
"""Features of a network, numbers of at least 0: operations, parameters, how many operators of each kind."""


def distance(one: Structure, other: Structure) -> float:
    """
    Return how far two structures are apart: the mean of 1 - smaller / larger over the features that both state.

    0 where all are equal, 1 where each has nothing of what the other has. A feature in another unit changes nothing,
    and none outweighs the others: billions of operations count as much as three layers. GENIE compares PB files
    and MetaGraphs and does not say how. Raises ``BadInput`` where no feature is common.
    """
    common = sorted(one.keys() & other.keys())
    if not common:
        raise BadInput(
            f"structure: no feature in common: {', '.join(sorted(one)) or 'none'}, and {', '.join(sorted(other))}"
        )
    pairs = [sorted((one[name], other[name])) for name in common]
    return sum(1 - least / most for least, most in pairs if most) / len(pairs)


def most_similar(structure: Structure, known: Mapping[str, Structure]) -> str:
    """Return the name of the nearest of known structures; the first by name of equally near ones."""
    return min(sorted(known), key=lambda name: distance(structure, known[name]))
