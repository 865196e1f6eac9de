"""placeopt: optimal placement of jobs on GPU clusters, with a proven gap on every round."""

__version__ = "0.1.0"
