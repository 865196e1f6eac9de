"""
The size of the code, before and after: ``python bench/house.py [COMMIT ...] [--out FILE.md]``.

One column for each commit in the order given, then the working tree. Lines are those of Python files, blank ones and
docstrings included. ``solve`` reaches the modules to which imports lead from the one that defines it, those inside
functions included, those for type checkers only left out.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
TREES = ("src", "bench", "tests")


def main() -> None:
    """Measure every commit and the working tree, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("commits", nargs="*", help="what to compare with: commits, tags or branches")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    columns = []
    for commit in arguments.commits:
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S607
        with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
            columns.append(measure(Path(folder)))
    columns.append(measure(ROOT))
    names = [*arguments.commits, "working tree"]
    lines = [
        "# The size of the code",
        "",
        f"`python bench/house.py {' '.join(arguments.commits)}`",
        "",
        f"| | {' | '.join(names)} |",
        "|---|" + "---|" * len(names),
        *(f"| {what} | {' | '.join(column[what] for column in columns)} |" for what in columns[0]),
        "",
    ]
    print("\n".join(lines))
    if arguments.out is not None:
        arguments.out.write_text("\n".join(lines), encoding="utf-8")


def measure(root: Path) -> dict[str, str]:
    """Return what the rows show, in their order."""
    out = {}
    for tree in TREES:
        files = sorted((root / tree).rglob("*.py"))
        out[f"{tree}: lines"] = f"{sum(map(lines_of, files)):,}"
        out[f"{tree}: files"] = f"{len(files):,}"
    package = root / "src" / "placeopt"
    folders = {file.parent for file in package.rglob("*.py")}
    sizes = {folder: len(list(folder.glob("*.py"))) for folder in folders}
    largest = max(sizes, key=lambda folder: (sizes[folder], str(folder)))
    longest = max(package.rglob("*.py"), key=lines_of)
    reached = reach(package, where_solve_is(package))
    out["packages"] = str(len(folders))
    out["largest package, modules"] = f"{sizes[largest]} ({largest.relative_to(package)})"
    out["longest file, lines"] = f"{lines_of(longest)} ({longest.relative_to(package)})"
    out["files over 400 lines"] = str(sum(lines_of(file) > 400 for file in package.rglob("*.py")))
    out["floors"] = floors(root)
    out["`solve` reaches, files"] = f"{len(reached):,}"
    out["`solve` reaches, lines"] = f"{sum(map(lines_of, reached)):,}"
    return out


def lines_of(file: Path) -> int:
    """Return the number of lines of a file."""
    return len(file.read_text(encoding="utf-8").splitlines())


def floors(root: Path) -> str:
    """Return the number of floors that the repository states: in `.importlinter`, before it in a test."""
    stated = root / ".importlinter"
    if stated.exists():
        return str(len(set(re.findall(r"; floor (\d+)", stated.read_text(encoding="utf-8")))))
    test = (root / "tests" / "test_imports.py").read_text(encoding="utf-8")
    for node in ast.parse(test).body:
        named = isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "FLOORS" for t in node.targets)
        if named and isinstance(node.value, ast.Tuple | ast.List):
            return str(len(node.value.elts))
    return "-"


def where_solve_is(package: Path) -> Path:
    """Return the module that defines the public ``solve``."""
    for relative in ("solving/api.py", "engine.py", "engine/api.py", "engine/engine.py"):
        file = package / relative
        if file.exists() and re.search(r"^def solve\(", file.read_text(encoding="utf-8"), re.MULTILINE):
            return file
    raise SystemExit(f"no module of {package} that is known to this script defines solve")


def reach(package: Path, start: Path) -> set[Path]:
    """Return the modules that importing ``start``, and calling what it defines, may import."""
    seen: set[Path] = set()
    todo = [start]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo += imports(package, file)
    return seen


def imports(package: Path, file: Path) -> list[Path]:
    """Return the modules of the package that a module imports; a package's ``__init__`` comes with its modules."""
    out: list[Path] = []
    nodes: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            for alias in node.names:
                out += files_of(package, alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            out += files_of(package, node.module)
            for alias in node.names:
                out += files_of(package, f"{node.module}.{alias.name}")
    return out


def files_of(package: Path, dotted: str) -> list[Path]:
    """Return the files that importing a module runs: its own and those of its packages, the outermost left out."""
    first, *rest = dotted.split(".")
    if first != package.name:
        return []
    out, folder = [], package
    for part in rest:
        if (folder / f"{part}.py").exists():
            return [*out, folder / f"{part}.py"]
        folder /= part
        if not (folder / "__init__.py").exists():
            break
        out.append(folder / "__init__.py")
    return out


if __name__ == "__main__":
    main()
