"""
The table of calls: what both transports offer, with what role, body and reply.

It is the one list from which routes, the check of roles, the description in OpenAPI and the page of the documentation
follow; ``service/service.py`` has a method of the same name for each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from placeopt.model import Instance
from placeopt.model.base import Record
from placeopt.service.messages import (
    OUTCOMES,
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
WHOLE = MappingProxyType({"type": "integer", "minimum": 0})
ONE_OUTCOME = MappingProxyType({"enum": [*OUTCOMES]})
"""JSON schemas of arguments behind the path."""
KEY = re.compile("[!-~]{1,200}")
"""An ``Idempotency-Key``."""


class Call(NamedTuple):
    """One call: its name, the route over HTTP, who may call it, and what goes in and out."""

    name: str
    route: str
    """Method and path; parts of the path in braces are arguments."""
    role: Role
    reply: type[BaseModel]
    help: str
    body: type[Record] | None = None
    keyed: bool = False
    """Whether it takes an ``Idempotency-Key``: it changes the cluster, and is in the journal."""
    query: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """Its arguments behind the path: name -> JSON schema."""

    @property
    def method(self) -> str:
        """GET, PUT, POST or DELETE."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path, from ``/`` on."""
        return self.route.partition(" ")[2]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of its arguments in the path."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))


_CALLS = (
    Call(
        "put_cluster",
        "PUT /v1/cluster",
        "admin",
        ClusterState,
        "Load a cluster; what a host finds running wins.",
        Instance,
        keyed=True,
    ),
    Call("state", "GET /v1/cluster", "read", ClusterState, "The cluster in numbers."),
    Call("snapshot", "GET /v1/snapshot", "read", Instance, "The cluster as an instance file."),
    Call(
        "changes",
        "POST /v1/changes",
        "decide",
        Changed,
        "Steps of edits over the cluster; all or nothing.",
        Changes,
        keyed=True,
    ),
    Call("decide", "POST /v1/decide", "decide", Decided, "Place some jobs at once.", Decide, keyed=True),
    Call(
        "start_round", "POST /v1/rounds", "decide", RoundStatus, "Solve a whole round beside other calls.", StartRound
    ),
    Call("rounds", "GET /v1/rounds", "read", RoundList, "The latest rounds."),
    Call("round", "GET /v1/rounds/{id}", "read", RoundStatus, "A round, its progress and its plan."),
    Call("cancel_round", "DELETE /v1/rounds/{id}", "decide", RoundStatus, "Stop a round; its best plan stays."),
    Call("commit", "POST /v1/commit", "decide", CommitResult, "Carry out a plan.", CommitRequest, keyed=True),
    Call(
        "outcome", "POST /v1/outcome", "decide", Changed, "Say what came of actions on the host.", Outcomes, keyed=True
    ),
    Call(
        "actions",
        "GET /v1/actions",
        "read",
        ActionList,
        "Actions that were returned; the open ones first.",
        query={"outcome": ONE_OUTCOME},
    ),
    Call("explain", "GET /v1/explain/{job}", "read", Answer, "Why a job waits, and what would let it start."),
    Call("explain_all", "GET /v1/explain", "read", Answer, "Why jobs wait, and which single change would start most."),
    Call(
        "events",
        "GET /v1/events",
        "read",
        EventList,
        "What changed; waits for news if asked to.",
        query={"after": WHOLE, "wait_s": WHOLE},
    ),
    Call("whatif", "POST /v1/whatif/{verb}", "read", Answer, "A question about capacity.", Question),
    Call("filter", "POST /k8s/filter", "decide", ExtenderAnswer, "kube-scheduler: the nodes for a pod.", ExtenderBody),
    Call(
        "prioritize", "POST /k8s/prioritize", "decide", HostPriorities, "kube-scheduler: scores of nodes.", ExtenderBody
    ),
    Call(
        "preempt",
        "POST /k8s/preempt",
        "decide",
        ExtenderAnswer,
        "kube-scheduler: nodes once victims are gone.",
        ExtenderBody,
    ),
    Call("bind", "POST /k8s/bind", "decide", ExtenderAnswer, "kube-scheduler: bind a pod; once.", ExtenderBody),
)
CALLS = {call.name: call for call in _CALLS}
"""Name -> call."""
