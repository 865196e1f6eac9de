"""
Why a job waits and what would let it in; what a placed job costs and where else it could be.

``explain(instance, plan, job)`` is the entry, ``explain_all(instance, plan)`` the one for the whole queue. Whether one
job fits in fixed surroundings is answered exactly, without a solver, by ``placeopt.feasibility``; from that follow
conflicts and the remedies on the job's side. What others would have to give up, and the best other
place, are small integer models.
"""

from placeopt.explain.answer import explain
from placeopt.explain.explanation import Explanation
from placeopt.explain.queue import explain_all
from placeopt.explain.queue_explanation import QueueExplanation, WaitingReason
from placeopt.explain.records import Alternative, JobPosition

__all__ = ["Alternative", "Explanation", "JobPosition", "QueueExplanation", "WaitingReason", "explain", "explain_all"]
