"""
What README.md and the pages in docs/ show works as shown.

Of every page all ``python`` and ``console`` blocks are run, in order, in this process, in a temporary folder that has
``examples/`` and ``instances/``. Python blocks of a page share their names; a ``text`` block that follows one is what
it prints. In a console block ``$ placeopt ...`` is run, and the lines below it stand in its output in that order;
``...`` leaves lines out, and runs of blanks may differ. Figures are compared: durations and MiB may differ, percentages
by half a point (a gap after some seconds), other figures by one percent. What is not to be run is in another kind of
block (``sh``, ``json``).
"""

import contextlib
import io
import pkgutil
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from placeopt.cli.run import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = "100"
FIGURE = re.compile(r"(\d[\d,]*(?:\.\d+)?(?:e-?\d+)?)( ?(?:ms\b|s\b|MiB\b|%)|)")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return (language, content) of the fenced blocks of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def loose(line: str) -> str:
    """Return the line without its figures and their units, and with single blanks."""
    return " ".join(FIGURE.sub("#", line).split())


def figures(line: str) -> list[tuple[float, str]]:
    """Return the figures of a line with their units; a figure without one has "" as unit."""
    return [(float(number.replace(",", "")), unit.strip()) for number, unit in FIGURE.findall(line)]


def alike(shown: str, printed: str) -> bool:
    """Tell whether a line of a page stands for a line of output: the same words, and figures that agree."""
    return loose(shown) == loose(printed) and all(
        unit in ("ms", "s", "MiB") or abs(a - b) <= (0.5 if unit == "%" else 0.01 * abs(b))
        for (a, unit), (b, _) in zip(figures(shown), figures(printed), strict=True)
    )


def compare(what: str, expected: str, output: list[str]) -> None:
    """Fail unless the expected lines stand in the output, in this order."""
    position = 0
    for line in expected.splitlines():
        if line.strip() in ("", "..."):
            continue
        found = next((i for i in range(position, len(output)) if alike(line, output[i])), None)
        assert found is not None, f"{what}\nnot in its output, or not in this order: {line!r}\n" + "\n".join(output)
        position = found + 1


def run_console(block: str) -> None:
    """Run the commands of a console block and compare their output: standard output, then standard error."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert not parts[0].strip(), f"output without a command: {parts[0]!r}"
    for part in parts[1:]:
        command, _, expected = part.replace("\\\n", " ").partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "placeopt", f"only placeopt is run: {command!r}"
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(arguments)
        printed = b"".join(stream.detach().getvalue() for stream in (out, err)).decode()
        assert code == 0, f"$ {command}\nexit code {code}\n{printed}"
        compare(f"$ {command}", expected, printed.splitlines())


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("GPU-milli  5,968,180   0.5 %  in 3.2 s", "  GPU-milli 5,970,000 0.9 % in 17 ms", True),
        ("gap 0.5 %", "gap 1.2 %", False),
        ("489 jobs placed", "470 jobs placed", False),
        ("optimal: no better plan", "feasible: no better plan", False),
        ("3 of 4", "3 of 5", False),
    ],
)
def test_figures_are_compared(shown: str, printed: str, same: bool) -> None:
    """Otherwise the comparison would prove nothing."""
    assert alike(shown, printed) == same


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("examples", "instances"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", WIDTH)
    monkeypatch.setenv("NO_COLOR", "1")
    names: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None  # by the block before
    for language, content in blocks(page):
        if language == "text" and printed is not None:
            compare("the python block", content, printed.splitlines())
        printed = None
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(content, str(page), "exec"), names)  # noqa: S102 - our own page
            printed = output.getvalue()
        elif language == "console":
            run_console(content)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_page_is_in_the_index() -> None:
    """A page that nobody finds is not there."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if page.name != "README.md" and f"({page.name})" not in index] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_an_example_prints_is_shown(page: Path) -> None:
    """A block that prints is followed by its output, so that its figures are compared."""
    content = blocks(page)
    followed = pairwise([*content, ("", "")])
    silent = [
        block for (kind, block), (after, _) in followed if kind == "python" and "print(" in block and after != "text"
    ]
    assert silent == []


def test_terms_of_the_glossary_live_where_it_says() -> None:
    """The middle column names a module, or a name of one."""
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    for path in re.findall(r"`(placeopt[\w.]*)` \|", glossary):
        pkgutil.resolve_name(path)


@pytest.mark.parametrize("page", ["concepts.md", "glossary.md"])
def test_every_stage_is_explained(page: str) -> None:
    """By the name that plans state."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    files = (ROOT / "src" / "placeopt" / "solving" / "stages").glob("*.py")
    stages = {name for file in files for name in re.findall(r' name: ClassVar\[str\] = "(.*)"', file.read_text())}
    assert len(stages) > 15
    unnamed = {"race"}  # the plan states the names of what it solves
    assert {stage for stage in stages if not re.search(f"`{stage}[`-]", text)} <= unnamed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_a_page_names_are_there(page: Path) -> None:
    """Their files and functions."""
    files = list((ROOT / "tests").rglob("*.py"))
    there = {file.stem for file in files}
    there |= {name for file in files for name in re.findall(r"^ *def (test_\w+)", file.read_text(), re.MULTILINE)}
    named = set(re.findall(r"\btest_\w+", page.read_text(encoding="utf-8")))
    assert named <= there
