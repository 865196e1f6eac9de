"""The table in docs/topology.md says what reading gives."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "topo"


def test_rows_of_stored_dumps_are_current() -> None:
    """The dumps that this repository holds must have the outcome that the page prints for them."""
    spec = importlib.util.spec_from_file_location("topology_table", ROOT / "bench" / "tables" / "topology_table.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (ROOT / "docs" / "topology.md").read_text(encoding="utf-8")
    paths = sorted(path for path in DATA.iterdir() if path.suffix != ".md")
    assert len(paths) >= 15
    for path in paths:
        printed = next(line for line in page.splitlines() if line.startswith("|") and f"{path.name}`" in line)
        assert script.row(DATA, path).split("|")[2:] == f"{printed}\n".split("|")[2:], path.name
