"""Errors of the HTTP side as problem documents (RFC 9457), in the same form as those of calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from placeopt.service.refused import TITLES, Refused

PROBLEM_TYPE = "application/problem+json"


def refuse(status: int, detail: str, more: Mapping[str, Any] | None = None) -> Refused:
    """Return the refusal with any status of HTTP."""
    return Refused(status, detail, title=TITLES.get(status, HTTPStatus(status).phrase), more=more)


def problem_bytes(refused: Refused) -> bytes:
    """Return the problem document of a refusal."""
    return json.dumps(refused.problem(), separators=(",", ":")).encode()
