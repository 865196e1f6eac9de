"""
What README.md and the pages in docs/ show works as shown.

Of every page all ``python`` and ``console`` blocks are run, in order, in a temporary folder that has ``instances/`` and
``tests/``. Python blocks of a page share their names. In a console block ``$ placeopt ...`` is run, and the lines below
it stand in its output in that order; figures may differ, runs of blanks too, and ``...`` leaves lines out. What is not
to be run is written in another kind of block (``text``, ``sh``, ``json``).
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = 100
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return (language, content) of the fenced blocks of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def loose(line: str) -> str:
    """Return the line without what may differ: figures with their units, blanks."""
    line = re.sub(r"\d[\d.,]*(e-?\d+)?( ?(ms|s|MiB)\b)?", "#", line)
    return " ".join(line.split())


def run_console(block: str, folder: Path) -> None:
    """Run the commands of a console block and compare their output."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert not parts[0].strip(), f"output without a command: {parts[0]!r}"
    for part in parts[1:]:
        command, _, expected = part.replace("\\\n", " ").partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "placeopt", f"only placeopt is run: {command!r}"
        environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "placeopt.cli", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"$ {command}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"
        output = [loose(line) for line in (done.stdout + done.stderr).splitlines()]
        position = 0
        for line in map(loose, expected.splitlines()):
            if line in ("", "..."):
                continue
            assert line in output[position:], f"$ {command}\nnot in its output, or not in this order: {line!r}\n" + (
                "\n".join(output)
            )
            position = output.index(line, position) + 1


def test_loose_forgets_figures_only() -> None:
    """Otherwise the comparison would prove nothing."""
    assert loose("  GPU-milli  5,968,180   0.5 %  in 3.2 s") == loose("GPU-milli 1 2 % in 17 ms")
    assert loose("optimal: no better plan") != loose("feasible: no better plan")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page."""
    for folder in ("instances", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for language, content in blocks(page):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(content, str(page), "exec"), names)  # noqa: S102 - our own page
        elif language == "console":
            run_console(content, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    """To files that are there."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readme_has_an_example_of_every_command() -> None:
    """And the set-up that continuous integration runs is the one that the page names."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in ("solve", "check", "import topo", "generate", "show", "doctor"):
        assert f"$ placeopt {command}" in text
    assert "make test" in text
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1] == "exec make test"


def test_every_page_is_in_the_index() -> None:
    """A page that nobody finds is not there."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if page.name != "README.md" and f"({page.name})" not in index] == []
