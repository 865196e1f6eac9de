"""Figures of benchmarks: ink on colours, panels."""

import pytest

from helpers.accessibility import contrast
from placeopt.benchmark import Figure, ink_on, render

pytest.importorskip("matplotlib")


def test_ink_has_the_higher_contrast() -> None:
    """By WCAG's formula: black on white is 21 to 1."""
    assert contrast("#FFFFFF", "#000000") == pytest.approx(21)
    for colour in ("#0072B2", "#E69F00", "#000000", "#FFFFFF"):
        assert contrast(colour, ink_on(colour)) >= 4.5


def test_panels_of_one_figure() -> None:
    """A single drawing is its own panel; a file holds all panels."""
    single = Figure("f", "F", "", (2.0, 2.0), lambda axes: {}, ("x",), [])
    assert single.panels() == [single]
    several = Figure("f", "F", "", (2.0, 2.0), {label: lambda axes: {} for label in "abcd"}, ("x",), [])
    assert [panel.name for panel in several.panels()] == ["f-0", "f-1", "f-2", "f-3"]
    assert b'viewBox="0 0 432 288"' in render(several, "svg")
