"""What FastAPI cannot read off an endpoint: bodies, arguments and problems of calls, in the form of OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from placeopt.service.calls import CALLS, KEY, Call
from placeopt.service.http.problems import PROBLEM_TYPE
from placeopt.service.refused import TITLES

REFERENCE = "#/components/schemas/{model}"
PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "place": {"type": "string", "description": "Path inside the body."},
    },
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": title,
        "content": {PROBLEM_TYPE: {"schema": {"$ref": REFERENCE.format(model="Problem")}}},
    }
    for status, title in TITLES.items()
}
"""Status -> description of its problem document, of every call."""


def operation(call: Call) -> dict[str, Any]:
    """Return what is added to the description of a call."""
    given: dict[str, Any] = {"x-role": call.role}
    given["parameters"] = [_parameter(name, "path", {"type": "string", "minLength": 1}) for name in call.arguments]
    given["parameters"] += [_parameter(name, "query", dict(schema)) for name, schema in call.query.items()]
    if call.keyed:
        pattern = {"type": "string", "pattern": f"^{KEY.pattern}$"}
        given["parameters"].append(_parameter("Idempotency-Key", "header", pattern))
    if call.body is not None:
        schema = {"$ref": REFERENCE.format(model=call.body.__name__)}
        given["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return given


def schemas() -> dict[str, Any]:
    """Return the schemas of all bodies, with what they refer to, and that of problems."""
    bodies = {call.body for call in CALLS.values() if call.body is not None}
    _, found = models_json_schema([(body, "validation") for body in bodies], ref_template=REFERENCE)
    return {**found["$defs"], "Problem": PROBLEM}


def _parameter(name: str, where: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": where, "required": where == "path", "schema": schema}
