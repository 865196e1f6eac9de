"""A round split over parts of the cluster, solved side by side, joined and repaired."""

from placeopt.partition.solve import solve_in_parts
from placeopt.partition.splitting import WAYS, split

__all__ = ["WAYS", "solve_in_parts", "split"]
