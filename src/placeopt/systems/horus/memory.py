"""GPU memory of a training job by Horus's formula."""

from __future__ import annotations

from placeopt import BadInput

MIB = 2**20


def gpu_memory_mib(
    *,
    batch: int,
    activations: int,
    parameters: int,
    gradients: int,
    startup_mib: int = 0,
    bytes_per_element: int = 4,
) -> int:
    """
    Return the least GPU memory that a training job needs, in MiB, rounded up.

    Parameters
    ----------
    batch
        Samples on the GPU at a time.
    activations, gradients
        Elements for one sample, forward and backward.
    parameters
        Elements of the model.
    startup_mib
        Memory of libraries before the first sample (Horus's delta).
    bytes_per_element
        4 for single precision.

    Raises
    ------
    BadInput
        If a count is negative.

    Notes
    -----
    Horus eq. 2: ``(B * A + P) + B * G + delta``. The paper counts elements and adds bytes; read: elements times their
    size, delta apart.
    """
    counts = {
        "batch": batch,
        "activations": activations,
        "parameters": parameters,
        "gradients": gradients,
        "startup_mib": startup_mib,
        "bytes_per_element": bytes_per_element,
    }
    for name, count in counts.items():
        if count < 0:
            raise BadInput(f"{name}: {count}; expected 0 or more")
    elements = batch * activations + parameters + batch * gradients
    return -(-elements * bytes_per_element // MIB) + startup_mib
