"""``placeopt explain``: text of 100 columns, JSON, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_large_gang import busy_racks

from helpers.plans import plan_for
from placeopt import solve, write_document
from placeopt.build import instance, job
from placeopt.cli.run import run
from placeopt.view import View


@pytest.fixture(autouse=True)
def _wide_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is 100 columns wide under every runner: some set 80."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The round of the large gang and its plan."""
    folder = tmp_path_factory.mktemp("gang")
    round_ = busy_racks()
    write_document(str(folder / "round.json"), round_)
    write_document(str(folder / "plan.json"), solve(round_))
    return str(folder / "round.json"), str(folder / "plan.json")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Explain, and return what is printed."""
    assert run(["explain", *arguments]) == 0
    return capsys.readouterr().out


ONE = (
    "gang: waiting, conflict\n",
    "GPU count, gang and rack cannot hold together",
    "largest gang in one rack: 7 workers, where it asks for 10\n",
    "2 racks would be enough, where it asks for 1\n",
    " it fits, at the price of ",
    "every answer is proven; not certified",
)
ALL = ("1 job waits: ", "distinct requests", "Reasons", "conflict", "every job was answered", "not certified")


@pytest.mark.parametrize(("asked", "words"), [(("--job", "gang"), ONE), ((), ALL)])
def test_text(
    files: tuple[str, str], asked: tuple[str, ...], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """The page of the documentation, and that of the whole queue; nothing is wider than 100 columns."""
    text = said(capsys, *files, *asked, "--time-limit", "60")
    assert max(map(len, text.splitlines())) <= 100
    assert [one for one in words if one not in text] == []


def test_json(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Views, of the job and of the queue; the tables as CSV."""
    table = tmp_path / "job.csv"
    one = View.model_validate_json(said(capsys, *files, "--job", "gang", "--json", "--csv", str(table)))
    assert (one.figure("reason"), one.provenance["command"][:16]) == ("conflict", "placeopt explain")
    assert [row[0] for row in one.table("Conflict").rows] == ["GPU count", "gang", "rack"]
    assert table.read_text().startswith("Conflict\nconstraint,requires\nGPU count,")
    queue = View.model_validate_json(said(capsys, *files, "--json"))
    assert [(row[0], row[2], row[4]) for row in queue.table("Reasons").rows] == [("conflict", 1, "gang")]


def test_placed_and_outvoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One job of many that hold the room, and a job that is placed."""
    round_ = instance(2, [*(job(f"small{i}", value=3) for i in range(8)), job("big", gpus=4, workers=2, value=4)])
    paths = str(tmp_path / "round.json"), str(tmp_path / "plan.json")
    write_document(paths[0], round_)
    write_document(paths[1], plan_for(round_, {f"small{i}": [(f"n{i // 4}", [i % 4])] for i in range(8)}))
    rivals = "small0, small1, small2, small3 and 4 more hold the room it needs and are worth 24 together"
    assert rivals in said(capsys, *paths, "--job", "big")
    text = said(capsys, *paths, "--job", "small0")
    assert "has its best place" in text


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["--job", "nobody"], 3, "no job 'nobody' in 'unnamed'; its ids look like 'held0'"),
        (["--job", "gang", "--time-limit", "0"], 2, "--time-limit"),
    ],
)
def test_refusals(
    files: tuple[str, str], arguments: list[str], code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and the exit code of what is wrong."""
    assert run(["explain", *files, *arguments]) == code
    assert word in capsys.readouterr().err
