"""
The table of calls: what both transports offer, with what role, body and reply.

It is the one list from which routes, the check of roles, the description in OpenAPI and the page of the documentation
follow; ``service/service.py`` has a method of the same name for each.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import BaseModel

from placeopt.model import Instance
from placeopt.model.base import Record
from placeopt.service.messages import (
    ActionList,
    Answer,
    Changed,
    Changes,
    ClusterState,
    CommitRequest,
    CommitResult,
    Decide,
    Decided,
    EventList,
    ExtenderAnswer,
    ExtenderBody,
    HostPriorities,
    Outcomes,
    Question,
    RoundList,
    RoundStatus,
    StartRound,
)

Role = Literal["read", "decide", "admin"]


class Call(NamedTuple):
    """One call: its name, the route over HTTP, who may call it, and what goes in and out."""

    name: str
    method: Literal["GET", "PUT", "POST", "DELETE"]
    path: str
    """Parts in braces are arguments."""
    role: Role
    body: type[Record] | None
    reply: type[BaseModel]
    changes: bool
    """Whether it changes the cluster: then it takes an ``Idempotency-Key``, and is in the journal."""
    help: str
    query: tuple[str, ...] = ()
    """Names of its arguments behind the path; whole numbers, and words for ``outcome``."""


CALLS: dict[str, Call] = {
    call.name: call
    for call in (
        Call(
            "put_cluster",
            "PUT",
            "/v1/cluster",
            "admin",
            Instance,
            ClusterState,
            True,
            "Load a cluster; what a host finds running wins.",
        ),
        Call("state", "GET", "/v1/cluster", "read", None, ClusterState, False, "The cluster in numbers."),
        Call("snapshot", "GET", "/v1/snapshot", "read", None, Instance, False, "The cluster as an instance file."),
        Call(
            "changes",
            "POST",
            "/v1/changes",
            "decide",
            Changes,
            Changed,
            True,
            "Steps of edits over the cluster; all or nothing.",
        ),
        Call("decide", "POST", "/v1/decide", "decide", Decide, Decided, True, "Place some jobs at once."),
        Call(
            "start_round",
            "POST",
            "/v1/rounds",
            "decide",
            StartRound,
            RoundStatus,
            False,
            "Solve a whole round beside other calls.",
        ),
        Call("rounds", "GET", "/v1/rounds", "read", None, RoundList, False, "The latest rounds."),
        Call(
            "round", "GET", "/v1/rounds/{id}", "read", None, RoundStatus, False, "A round, its progress and its plan."
        ),
        Call(
            "cancel_round",
            "DELETE",
            "/v1/rounds/{id}",
            "decide",
            None,
            RoundStatus,
            False,
            "Stop a round; its best plan stays.",
        ),
        Call("commit", "POST", "/v1/commit", "decide", CommitRequest, CommitResult, True, "Carry out a plan."),
        Call(
            "outcome", "POST", "/v1/outcome", "decide", Outcomes, Changed, True, "Say what came of actions on the host."
        ),
        Call(
            "actions",
            "GET",
            "/v1/actions",
            "read",
            None,
            ActionList,
            False,
            "Actions that were returned to a caller, those without an outcome first.",
            ("outcome",),
        ),
        Call(
            "explain",
            "GET",
            "/v1/explain/{job}",
            "read",
            None,
            Answer,
            False,
            "Why a job waits, and what would let it start.",
        ),
        Call(
            "explain_all",
            "GET",
            "/v1/explain",
            "read",
            None,
            Answer,
            False,
            "Why the jobs of the queue wait, by reason, and which single change would start most.",
        ),
        Call(
            "events",
            "GET",
            "/v1/events",
            "read",
            None,
            EventList,
            False,
            "What changed; waits for news where asked to.",
            ("after", "wait_s"),
        ),
        Call("whatif", "POST", "/v1/whatif/{verb}", "read", Question, Answer, False, "A question about capacity."),
        Call(
            "filter",
            "POST",
            "/k8s/filter",
            "decide",
            ExtenderBody,
            ExtenderAnswer,
            False,
            "kube-scheduler: the nodes for a pod.",
        ),
        Call(
            "prioritize",
            "POST",
            "/k8s/prioritize",
            "decide",
            ExtenderBody,
            HostPriorities,
            False,
            "kube-scheduler: scores of nodes for a pod.",
        ),
        Call(
            "preempt",
            "POST",
            "/k8s/preempt",
            "decide",
            ExtenderBody,
            ExtenderAnswer,
            False,
            "kube-scheduler: where a pod fits once victims are gone.",
        ),
        Call(
            "bind",
            "POST",
            "/k8s/bind",
            "decide",
            ExtenderBody,
            ExtenderAnswer,
            False,
            "kube-scheduler: bind a pod; the same call again does nothing.",
        ),
    )
}
"""Name -> call."""
