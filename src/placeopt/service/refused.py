"""A call that the service refuses: what both transports answer as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placeopt.errors import (
    BadInput,
    EngineInUse,
    InternalFault,
    PlaceoptError,
    StaleSnapshot,
    Unsupported,
    printable,
)

TITLES = {
    400: "The request is malformed",
    401: "A token is needed",
    403: "The token does not allow this call",
    404: "Not found",
    405: "The path has another method",
    409: "The cluster has changed",
    413: "The request is too large",
    415: "The request is not JSON",
    422: "The request contradicts the cluster",
    500: "Internal fault",
    503: "The service cannot answer now",
}
"""Status of HTTP -> title."""


class Refused(PlaceoptError):
    """
    A call was refused; nothing changed.

    Attributes
    ----------
    status, detail
        Status of HTTP, one of ``TITLES``, and why, in words.
    place
        Path inside the body, such as ``jobs[3].options``; None where it is not about a part of the body.
    more
        Further members of the problem: ``jobs`` and ``nodes`` that changed, ``revision``, ``retry_after_s``.
    """

    def __init__(
        self, status: int, detail: str, *, place: str | None = None, more: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.place = status, printable(detail), place
        self.more = dict(more or {})

    def problem(self) -> dict[str, Any]:
        """Return the members of the problem document."""
        problem: dict[str, Any] = {"type": "about:blank", "title": TITLES[self.status], "status": self.status}
        problem["detail"] = self.detail
        if self.place is not None:
            problem["place"] = self.place
        return problem | self.more


def malformed(error: BadInput, status: int = 400) -> Refused:
    """Return the refusal of a body that is not what the call expects, or with 422 contradicts the cluster."""
    place = next((fault.where for fault in error.faults if fault.where), None)
    more = {"faults": [fault._asdict() for fault in error.faults]} if error.faults else None
    return Refused(status, str(error), place=place, more=more)


def refusal(error: Exception) -> Refused:
    """Return the refusal for any exception of a call."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, StaleSnapshot):
        more = {
            "planned": error.planned,
            "revision": error.revision,
            "jobs": list(error.jobs),
            "nodes": list(error.nodes),
        }
        return Refused(409, str(error), more=more)
    if isinstance(error, BadInput):
        return malformed(error, 422)
    if isinstance(error, Unsupported):
        return Refused(422, str(error))
    if isinstance(error, EngineInUse):
        return Refused(503, str(error))
    if isinstance(error, MemoryError):
        return Refused(503, "out of memory; the request is too large for this machine or its limit")
    if isinstance(error, InternalFault):
        return Refused(500, str(error))
    return Refused(500, f"{type(error).__name__}: {error}")
