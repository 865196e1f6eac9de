"""Tests that run on the workers of dask and of ray, skipped in words where these are not installed."""

import importlib.util

import pytest

PACKAGES = {"dask": "distributed", "ray": "ray"}
"""Places of workers, and the package that each needs."""

elsewhere = pytest.mark.parametrize(
    "where",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                importlib.util.find_spec(package) is None, reason=f"{package} is not installed; pip install it to try"
            ),
        )
        for name, package in PACKAGES.items()
    ],
    scope="class",
)
