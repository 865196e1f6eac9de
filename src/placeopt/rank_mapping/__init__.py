"""Which rank of a job sits on which of its GPUs: the rank-to-device mapping, exact up to 16 GPUs, bounded above."""

from placeopt.rank_mapping.case import Mapping
from placeopt.rank_mapping.qaplib import parse_qaplib, parse_traffic
from placeopt.rank_mapping.quadratic import solve_quadratic
from placeopt.rank_mapping.ranks import improve_ranks, map_ranks

__all__ = [
    "Mapping",
    "improve_ranks",
    "map_ranks",
    "parse_qaplib",
    "parse_traffic",
    "solve_quadratic",
]
