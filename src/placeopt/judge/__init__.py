"""
What a scheduler decided, judged: `judge` compares it with the proven best plans of rounds that ask one thing each.

No rule is stated here: the engine solves the rounds, the referee accepts their plans, and `placeopt.explain` gives the
reasons. `live_round` makes a round to judge of a reading of a cluster.
"""

from placeopt.judge.answer import judge
from placeopt.judge.live import live_round
from placeopt.judge.records import Band, Gain, Judgement, Regret, Stranded, WaitingJobs

__all__ = ["Band", "Gain", "Judgement", "Regret", "Stranded", "WaitingJobs", "judge", "live_round"]
