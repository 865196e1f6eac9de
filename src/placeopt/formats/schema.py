"""JSON Schema of the two documents, made from the model; published under ``docs/schema/``."""

from typing import Any

from placeopt.model import FORMAT_VERSION, Instance, Plan


def instance_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of an instance."""
    return _schema(Instance, "instance")


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a plan."""
    return _schema(Plan, "plan")


def _schema(kind: type[Instance] | type[Plan], name: str) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{name}-{FORMAT_VERSION}.json",
        "$comment": "A schema knows no references between objects, no duplicate keys, and no 3 from 3.0; placeopt does.",
        **kind.model_json_schema(by_alias=True, mode="validation"),
    }
