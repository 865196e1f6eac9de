"""
Rounds for measurements and tests: those of ``placeopt.generators``, and specs that each stress one part of a solver.

``README.md`` describes the latter; figures that come from a trace or a paper are cited where they stand.
"""

from collections.abc import Callable, Mapping

from made_rounds.contention_rounds import contention
from made_rounds.dgx1_nodes import cubemesh, islands
from made_rounds.elastic_rounds import elastic
from made_rounds.node_filling import resources, varied
from made_rounds.parity_rounds import parity
from placeopt import BadInput, Instance, generators
from placeopt.generators import Size

SPECS: Mapping[str, Callable[[Size], Instance]] = {
    **generators.SPECS,
    "varied": varied,
    "cubemesh": cubemesh,
    "resources": resources,
    "parity": parity,
    "islands": islands,
    "elastic": elastic,
    "contention": contention,
}
"""Spec name -> its generator."""


def generate(spec: str, *, jobs: int, nodes: int, gpus: int, seed: int) -> Instance:
    """Make a round as ``placeopt.generate`` does, of any spec; raises `BadInput` as it does."""
    if spec not in SPECS:
        raise BadInput(f"spec: {spec!r}, expected one of {', '.join(SPECS)}")
    return SPECS[spec](Size(jobs=jobs, nodes=nodes, gpus=gpus, seed=seed))
