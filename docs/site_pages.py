"""
Pages of the site that are made from the code: public Python names, commands with their options, fields of the files.

mkdocs calls ``on_files`` before it reads the pages and ``on_page_markdown`` for each of them. Links to files of the
repository that are no pages of the site become plain paths.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent
LINK = re.compile(r"\[([^\]]+)\]\(((?!https?:|#)[^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code."""
    for name, text in (
        ("reference/python.md", python_page()),
        ("reference/commands.md", commands_page()),
        ("reference/fields.md", fields_page()),
    ):
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - by keyword
    """Write links that lead out of the site as plain paths."""
    here = Path(page.file.src_uri).parent

    def link(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        if (here / target).as_posix() in files.src_uris:
            return found[0]
        path = (DOCS / here / target).resolve()
        return f"{text} (`{path.relative_to(DOCS.parent)}`)" if path.exists() else found[0]

    return LINK.sub(link, markdown)


def python_page() -> str:
    """Return one entry for every public name, from its docstring."""
    import placeopt
    from placeopt.lazy import homes

    entries = (f"::: {module}.{name}\n" for name, module in sorted(homes(placeopt.__name__).items()))
    return "# Python\n\nEverything here is imported from `placeopt` itself.\n\n" + "\n".join(entries)


def commands_page() -> str:
    """Return every command with its help and options."""
    from typer.main import get_command

    from placeopt.cli.app import build_app
    from placeopt.cli.importers.registry import IMPORTERS

    return "# Commands\n\n" + "\n".join(_command("placeopt", get_command(build_app(tuple(IMPORTERS.values())))))


def _command(path: str, command: Any) -> Iterator[str]:
    for name, sub in sorted(getattr(command, "commands", {}).items()):
        yield from _command(f"{path} {name}", sub)
    if hasattr(command, "commands"):
        return
    yield f"## {path}\n"
    yield (command.help or "").replace("\b", "").replace("\f", "") + "\n"
    if command.epilog:
        yield f"```sh\n{command.epilog.removeprefix('Example: ')}\n```\n"
    rows = [
        (", ".join((*option.opts, *option.secondary_opts)), getattr(option, "help", None) or "")
        for option in command.params
        if not getattr(option, "hidden", False)
    ]
    if rows:
        yield "| option | meaning |\n|---|---|"
        yield from (f"| `{names}` | {_cell(text)} |" for names, text in rows)
        yield ""


def fields_page() -> str:
    """Return every field of instances, plans, scenarios and scheduling policies, from their JSON Schemas."""
    parts = ["# Fields of the files\n"]
    for path in sorted((DOCS / "schema").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        parts.append(f"## {path.stem}\n")
        parts += _record(schema.get("title", path.stem), schema)
        for name, record in sorted(schema.get("$defs", {}).items()):
            parts += _record(name, record)
    return "\n".join(parts)


def _record(name: str, record: dict[str, Any]) -> Iterator[str]:
    fields = record.get("properties")
    if not fields:
        return
    yield f"### {name}\n"
    yield f"{_cell(record.get('description', ''))}\n"
    yield "| field | type | default | meaning |\n|---|---|---|---|"
    for key, field in fields.items():
        default = json.dumps(field["default"]) if "default" in field else "required"
        yield f"| `{key}` | {_type(field)} | {_cell(default)} | {_cell(field.get('description', ''))} |"
    yield ""


def _type(field: dict[str, Any]) -> str:
    """Write the type of a field in words."""
    if "$ref" in field:
        return f"`{field['$ref'].rsplit('/', 1)[-1]}`"
    for key in ("anyOf", "oneOf"):
        if key in field:
            return " or ".join(dict.fromkeys(_type(one) for one in field[key]))
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"map to {_type(field['additionalProperties'])}"
    return str(field.get("type", "any"))


def _cell(text: str) -> str:
    """Write text as one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
