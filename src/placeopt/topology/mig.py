"""Profiles of GPUs that NVIDIA's multi-instance GPU (MIG) divides: how wide they are, and where they may begin."""

from placeopt.arguments import checked
from placeopt.errors import BadArgument
from placeopt.model.machine import Profile

_OF_EIGHT = (
    (1, 1, range(7)),
    (1, 2, range(0, 7, 2)),
    (2, 2, range(0, 5, 2)),
    (3, 4, (0, 4)),
    (4, 4, (0,)),
    (7, 8, (0,)),
)
_OF_FOUR = ((1, 1, range(4)), (2, 2, (0, 2)), (4, 4, (0,)))
"""Compute slices, memory slices and first memory slices of each profile, as ``nvidia-smi mig -lgipp`` lists them."""

_MEMORY_GB = {
    "A30-24GB": (6, 12, 24),
    "A100-40GB": (5, 10, 10, 20, 20, 40),
    "A100-80GB": (10, 20, 20, 40, 40, 80),
    "H100-80GB": (10, 20, 20, 40, 40, 80),
    "H100-94GB": (12, 24, 24, 47, 47, 94),
    "H100-96GB": (12, 24, 24, 48, 48, 96),
    "H200-141GB": (18, 35, 35, 71, 71, 141),
    "B200-180GB": (23, 45, 45, 90, 90, 180),
}
"""GPU -> memory in the name of each profile."""
MIG_GPUS = tuple(_MEMORY_GB)


@checked
def mig_profiles(gpu: str) -> tuple[Profile, ...]:
    """
    Return the profiles of a GPU in MIG mode that may be divided again, for ``Gpu.profiles``.

    A GPU whose division the site fixes needs none: its instances are named amounts of the node.

    Parameters
    ----------
    gpu
        One of `MIG_GPUS`, such as ``A100-80GB``.

    Returns
    -------
    tuple of Profile
        Narrow ones first, named as NVIDIA does: ``1g.10gb``. A slot is a slice of memory; the seven compute slices of a
        GPU with eight of memory never bind beside these. Profiles with media extensions (``+me``) are left out: a GPU
        has one set of these, which slots do not tell.

    Raises
    ------
    BadInput
        If the profiles of that GPU are not known.

    Notes
    -----
    NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles".
    """
    if gpu not in _MEMORY_GB:
        raise BadArgument(f"gpu: no profiles of {gpu!r}; there are: {', '.join(MIG_GPUS)}")
    memory = _MEMORY_GB[gpu]
    forms = _OF_FOUR if len(memory) == len(_OF_FOUR) else _OF_EIGHT
    return tuple(
        Profile(id=f"{compute}g.{gb}gb", width=width, starts=tuple(starts))
        for (compute, width, starts), gb in zip(forms, memory, strict=True)
    )
