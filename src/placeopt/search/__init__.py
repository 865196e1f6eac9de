"""Local search on exact integer differences: small changes of a plan, many a second, compiled or not."""

from placeopt.search.account_trees import account_facts
from placeopt.search.accounts import have_room
from placeopt.search.annealing import is_compiled
from placeopt.search.arrays import state_of
from placeopt.search.coverage import what_is_judged, what_is_missing
from placeopt.search.entries import placement_of, put, write
from placeopt.search.limits import has_room, load_links, may_hold, open_gpus
from placeopt.search.search import LocalSearch
from placeopt.search.state import State

__all__ = [
    "LocalSearch",
    "State",
    "account_facts",
    "has_room",
    "have_room",
    "is_compiled",
    "load_links",
    "may_hold",
    "open_gpus",
    "placement_of",
    "put",
    "state_of",
    "what_is_judged",
    "what_is_missing",
    "write",
]
