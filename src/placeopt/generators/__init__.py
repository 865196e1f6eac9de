"""
Made-up rounds with documented distributions: the same arguments always give the same instance.

``docs/generators.md`` describes every spec; figures that come from a trace or a paper are cited where they stand.
"""

from collections.abc import Callable, Mapping

from placeopt.arguments import checked
from placeopt.errors import BadArgument
from placeopt.generators.perfect_packing import planted
from placeopt.generators.shared import Size, equal_nodes, two_socket_machine
from placeopt.generators.specs import defrag, fractions, gangs, preempt, uniform
from placeopt.model import Instance

SPECS: Mapping[str, Callable[[Size], Instance]] = {
    "uniform": uniform,
    "gangs": gangs,
    "fractions": fractions,
    "planted": planted,
    "preempt": preempt,
    "defrag": defrag,
}
"""Spec name -> its generator; the first line of the generator's docstring says what it is for."""


@checked
def generate(spec: str, *, jobs: int, nodes: int, gpus: int, seed: int) -> Instance:
    """
    Make a round of ``jobs`` waiting jobs on ``nodes`` nodes of ``gpus`` GPUs, some of them busy.

    Parameters
    ----------
    spec
        A name of ``SPECS``.
    jobs
        Number of waiting jobs; the running ones stand in the instance too, before them. Together 0 to 2,000,000.
    nodes, gpus
        Number of nodes, 1 to 200,000, and of GPUs in each, 1 to 64, together at most 2,000,000.
    seed
        Seed of NumPy's default generator, 0 to 2^63 - 1. The figures hold for one version of NumPy's streams, which
        NumPy keeps unless it must correct them.

    Returns
    -------
    Instance
        Validated, named ``<spec>-<jobs>x<nodes>x<gpus>-s<seed>``; its running placements are feasible.

    Raises
    ------
    BadInput
        If the spec is unknown (the message lists those that are known) or a number is out of range.
    """
    if spec not in SPECS:
        raise BadArgument(f"spec: {spec!r}, expected one of {', '.join(SPECS)}")
    return SPECS[spec](Size(jobs=jobs, nodes=nodes, gpus=gpus, seed=seed))


__all__ = [
    "SPECS",
    "Size",
    "equal_nodes",
    "generate",
    "two_socket_machine",
    *SPECS,
]
