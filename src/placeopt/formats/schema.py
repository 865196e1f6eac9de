"""JSON Schema of the two documents, made from the model; published under ``docs/schema/``."""

import json
import os
from typing import Any

from placeopt.formats.files import write_bytes
from placeopt.model import FORMAT_VERSION, Instance, Plan


def instance_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of an instance."""
    return _schema(Instance, "instance")


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a plan."""
    return _schema(Plan, "plan")


def write_schemas(folder: str | os.PathLike[str]) -> None:
    """Write both schemas into ``folder``; to be done, and reviewed, whenever the model changes."""
    for name, schema in (("instance", instance_schema()), ("plan", plan_schema())):
        text = json.dumps(schema, indent=2) + "\n"
        write_bytes(os.path.join(folder, f"{name}-{FORMAT_VERSION}.json"), text.encode())


def _schema(kind: type[Instance] | type[Plan], name: str) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{name}-{FORMAT_VERSION}.json",
        "$comment": "Placeopt also refuses references to nothing, keys that stand twice, and 3.0 for 3.",
        **kind.model_json_schema(by_alias=True, mode="validation"),
    }
