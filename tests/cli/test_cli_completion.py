"""Shell completion: the script of each shell, and what is completed at the words of a command line."""

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_that_asks_back(cli, monkeypatch, shell):
    monkeypatch.setenv("_PLACEOPT_COMPLETE", f"source_{shell}")
    script = cli()
    assert script.code == 0
    assert f"_PLACEOPT_COMPLETE=complete_{shell}" in script.out


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("placeopt so", ["solve"]),
        ("placeopt whatif f", ["fit", "fail"]),
        ("placeopt solve --ti", ["--time-limit"]),
        ("placeopt import jobs --co", ["--columns"]),
        ("placeopt nothing", []),
    ],
)
def test_the_last_word_is_completed(cli, monkeypatch, words, completed):
    monkeypatch.setenv("_PLACEOPT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert cli().out.split() == completed
    monkeypatch.setenv("COMP_WORDS", "")
    monkeypatch.setenv("_PLACEOPT_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", words)
    assert [word for word in completed if f'"{word}"' in cli().out] == completed


def test_a_shell_without_completion_is_refused(cli, monkeypatch):
    monkeypatch.setenv("_PLACEOPT_COMPLETE", "source_none")
    assert cli().code == 1
