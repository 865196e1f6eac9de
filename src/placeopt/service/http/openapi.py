"""The description of the calls in the form of OpenAPI 3.1, from the table of calls and the records of the model."""

from __future__ import annotations

import re
from typing import Any

from pydantic.json_schema import models_json_schema

from placeopt import __version__
from placeopt.service.calls import CALLS

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
STATUSES = {
    400: "The request is malformed; `place` is the path inside the body.",
    401: "A token is needed.",
    403: "The token does not allow this call.",
    404: "Not found.",
    405: "The path has another method.",
    408: "The request took too long to arrive.",
    409: "The cluster has changed; `jobs` and `nodes` say what.",
    413: "The request is too large.",
    415: "The request is not JSON.",
    422: "The request contradicts the cluster.",
    423: "Something that allows no second one is at work.",
    500: "Internal fault.",
    503: "Loading, about to end, too much at work, or no reply in time; `retry_after_s`.",
}
"""Status -> meaning; all of them are problem documents."""


def openapi() -> dict[str, Any]:
    """Return the description; it depends on the table of calls alone."""
    kinds = dict.fromkeys(kind for call in CALLS.values() for kind in (call.body, call.reply) if kind is not None)
    names, schemas = models_json_schema([(kind, "validation") for kind in kinds], ref_template=REFERENCE, by_alias=True)
    paths: dict[str, dict[str, Any]] = {}
    for call in CALLS.values():
        operation: dict[str, Any] = {
            "operationId": call.name,
            "summary": call.help,
            "x-role": call.role,
            "security": [{"token": []}],
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
                for name in re.findall(r"\{(\w+)\}", call.path)
            ]
            + [{"name": name, "in": "query", "required": False, "schema": {"type": "string"}} for name in call.query],
            "responses": {"200": _content("The reply.", "application/json", names[call.reply, "validation"])}
            | {str(status): {"$ref": f"#/components/responses/{status}"} for status in STATUSES},
        }
        if call.body is not None:
            schema = names[call.body, "validation"]
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        if call.changes:
            operation["parameters"].append(
                {
                    "name": "Idempotency-Key",
                    "in": "header",
                    "required": False,
                    "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
                }
            )
        paths.setdefault(call.path, {})[call.method.lower()] = operation
    problem = {"$ref": REFERENCE.format(model="Problem")}
    return {
        "openapi": "3.1.0",
        "info": {"title": "placeopt", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**schemas.get("$defs", {}), "Problem": PROBLEM},
            "responses": {
                str(status): _content(words, "application/problem+json", problem) for status, words in STATUSES.items()
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _content(words: str, kind: str, schema: Any) -> dict[str, Any]:
    return {"description": words, "content": {kind: {"schema": schema}}}
