"""The parser of a command line has only what that line names: it must answer as the parser of everything does."""

import pytest

from helpers.command_line import Cli
from placeopt.cli.app import COMMANDS, GROUPS
from placeopt.cli.importers.registry import IMPORTERS

GROUP_COMMANDS = {name: [command.name for command in group.commands] for name, group in GROUPS.items()}
GROUP_COMMANDS["import"] += IMPORTERS
LINES = [
    [],
    ["--help"],
    ["-h", "solve"],
    ["--version", "solve"],
    ["--", "solve"],
    ["--unknown"],
    ["slve"],
    *([command.name] for command in COMMANDS),
    *([command.name, "--help"] for command in COMMANDS),
    ["solve", "whatif"],
    ["whatif", "--help", "fit"],
    ["whatif", "fot"],
    *([group, *rest] for group in GROUPS for rest in ([], ["--help"], ["--unknown"])),
    *([group, name, "--help"] for group, names in GROUP_COMMANDS.items() for name in names),
]
LINES.remove(["doctor"])  # it runs
LINES.remove(["serve"])  # it runs until it is told to stop


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_the_parser_of_a_line_answers_as_the_parser_of_everything(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, line: list[str]
) -> None:
    """Same exit code, same words on both streams."""
    answer = cli(*line)
    monkeypatch.setattr("placeopt.cli.run.first_words", lambda _: None)
    assert cli(*line) == answer
