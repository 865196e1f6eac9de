"""Random rounds, so small that every allocation can be tried, with every rule and cost switched on and off."""

from helpers.small_rounds.dice import Dice
from helpers.small_rounds.draw import random_round
from helpers.small_rounds.features import features

__all__ = ["Dice", "features", "random_round"]
