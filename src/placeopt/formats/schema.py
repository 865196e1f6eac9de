"""JSON Schema of the documents, made from the model; published under ``docs/schema/``."""

import json
import os
from typing import Any

from placeopt.formats.files import write_bytes
from placeopt.model import FORMAT_VERSION, Instance, Plan
from placeopt.model.base import Record
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling


def instance_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of an instance."""
    return _schema(Instance, "instance")


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a plan."""
    return _schema(Plan, "plan")


def scenario_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scenario."""
    return _schema(Scenario, "scenario")


def scheduling_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scheduling policy."""
    return _schema(Scheduling, "scheduling")


def write_schemas(folder: str | os.PathLike[str]) -> None:
    """Write all schemas into ``folder``; to be done, and reviewed, whenever the model changes."""
    schemas = {
        "instance": instance_schema(),
        "plan": plan_schema(),
        "scenario": scenario_schema(),
        "scheduling": scheduling_schema(),
    }
    for name, schema in schemas.items():
        text = json.dumps(schema, indent=2) + "\n"
        write_bytes(os.path.join(folder, f"{name}-{FORMAT_VERSION}.json"), text.encode())


def _schema(kind: type[Record], name: str) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{name}-{FORMAT_VERSION}.json",
        "$comment": "Placeopt also refuses references to nothing, keys that stand twice, and 3.0 for 3.",
        **kind.model_json_schema(by_alias=True, mode="validation"),
    }
