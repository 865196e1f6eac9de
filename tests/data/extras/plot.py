"""A figure is drawn."""

from placeopt.benchmark import Figure, render


def draw(axes):
    axes.plot([1, 2], [1, 2])
    return {}


figure = Figure("f", "title", "caption", (4, 3), draw, ("x",), ((1,),))
assert b"<svg" in render(figure, "svg")
