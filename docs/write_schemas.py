"""
JSON Schema of the documents, made from their records: ``python docs/write_schemas.py [FOLDER]``; else docs/schema.

Run it, and review the difference, whenever a record changes.
"""

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from placeopt.certificates import Certificate
from placeopt.model import FORMAT_VERSION, Instance, Plan
from placeopt.model.base import Record
from placeopt.model.costs import COST_KINDS
from placeopt.model.templates import OWN, TEMPLATE, JobsDocument
from placeopt.scheduling import Rule, Scheduling
from placeopt.simulation import Scenario
from placeopt.view import View

DOCUMENTS: dict[str, type[Record]] = {
    "instance": Instance,
    "plan": Plan,
    "scenario": Scenario,
    "scheduling": Scheduling,
    "certificate": Certificate,
    "view": View,
}
"""Name of the schema -> record."""


def document_schema(name: str) -> dict[str, Any]:
    """
    Return the JSON Schema (draft 2020-12) of a document; ``name`` is a key of `DOCUMENTS`.

    The description of a field is the docstring under it in the source of its record. Reading them here, and not with
    pydantic's ``use_attribute_docstrings``, keeps the cost out of every import of the model.
    """
    kind = DOCUMENTS[name]
    schema = kind.model_json_schema(by_alias=True, mode="validation")
    records = records_in(kind)
    for definition in records_of(schema):
        if definition["title"] in records:
            texts = field_descriptions(records[definition["title"]])
            for field, prop in definition["properties"].items():
                if field in texts:
                    prop["description"] = texts[field]
    if issubclass(kind, JobsDocument):
        _add_templates(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{name}-{FORMAT_VERSION}.json",
        "$comment": "Placeopt also refuses references to nothing, keys that appear twice, and 3.0 for 3.",
        **schema,
    }


def _add_templates(schema: dict[str, Any]) -> None:
    """Add what jobs have in common, and how they name it: records in memory are whole."""
    job = schema["$defs"]["Job"]
    name = {
        "description": "The template that the job is of: then it states no other field of one.",
        **job["properties"]["id"],
    }
    shared = {field: prop for field, prop in job["properties"].items() if field not in OWN}
    job["properties"] = {"id": job["properties"]["id"], TEMPLATE: {**name, "title": "Template"}, **job["properties"]}
    schema["$defs"]["Template"] = {
        "additionalProperties": False,
        "description": "What jobs have in common: all of a job but its id, times, user and origin.",
        "properties": shared,
        "title": "Template",
        "type": "object",
    }
    schema["properties"]["templates"] = {
        "additionalProperties": {"$ref": "#/$defs/Template"},
        "description": "What jobs have in common, by a name that they state.",
        "title": "Templates",
        "type": "object",
    }


@cache
def field_descriptions(kind: type[Record]) -> dict[str, str]:
    """Return field (by its key in files) -> docstring under it in the source, inherited fields included."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base is Record or not issubclass(base, Record):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for statement, following in pairwise(body):
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
                and isinstance(following.value.value, str)
                and statement.target.id in kind.model_fields
            ):
                name = statement.target.id
                texts[kind.model_fields[name].alias or name] = " ".join(following.value.value.split())
    return texts


def records_of(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schemas of records that a schema holds, wherever they stand."""
    if isinstance(schema, dict):
        if "title" in schema and "properties" in schema:
            yield schema
        for part in schema.values():
            yield from records_of(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from records_of(part)


def records_in(kind: type[Record]) -> dict[str, type[Record]]:
    """Return the records that a document may hold, itself included, by name: no others, since names are used twice."""
    found: dict[str, type[Record]] = {}
    left: list[object] = [kind, *(_kinds_of_rules() if kind is Scheduling else ())]
    left += [one.parameters for one in COST_KINDS.values()]
    while left:
        annotation = left.pop()
        if not (isinstance(annotation, type) and issubclass(annotation, Record)):
            left += get_args(annotation)
        elif annotation.__name__ not in found:
            found[annotation.__name__] = annotation
            left += [field.annotation for field in annotation.model_fields.values()]
    return found


def _kinds_of_rules() -> list[type[Rule]]:
    """Return the records of rules' parameters, which the fields of a policy name by their registries."""
    kinds = [Rule]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return kinds


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "schema"
    for document in DOCUMENTS:
        text = json.dumps(document_schema(document), indent=2) + "\n"
        (folder / f"{document}-{FORMAT_VERSION}.json").write_text(text, encoding="utf-8")
