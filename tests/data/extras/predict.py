"""A forest is fitted."""

from placeopt.predict import fit_regressor

assert fit_regressor("forest", [{"x": float(i), "y": 2.0 * i} for i in range(20)], "y", source="try").features == ("x",)
