"""The error by which Horus judges regressors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt import BadInput
from placeopt.predict import check_lists


def rmsle(predicted: Sequence[float] | np.ndarray, measured: Sequence[float] | np.ndarray) -> float:
    """
    Return the root mean square of log(1 + predicted) - log(1 + measured); predictions below 0 count as 0.

    Source: Horus 4.1.1, which names the measure and no formula; this is the usual one, with the natural logarithm.
    """
    p, m = check_lists(predicted, measured)
    if (m < 0).any():
        raise BadInput(f"measured: {m.min()}; a logarithmic error needs measurements of at least 0")
    return float(np.sqrt(((np.log1p(p.clip(min=0)) - np.log1p(m)) ** 2).mean()))
