"""What comes from files and arguments is safe to print, in messages, tables, JSON and CSV."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput, PlaceoptError, read_instance
from placeopt.cli.run import run
from placeopt.errors import printable
from placeopt.importers import read_openb
from placeopt.model import Job
from placeopt.view import Column, Table, View, as_csv, csv_text

UNSAFE = ["\0", "\x1b", "\x7f", "\x85", "\x9b", "\u061c", "\u200b", "\u200e", "\u202e", "\u2028", "\u2066", "\ufeff"]
GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "instance-2.json"


def test_what_cannot_be_seen_is_escaped_as_json() -> None:
    """What cannot be seen is escaped, and what can be seen is left as it is."""
    text = "a" + "".join(UNSAFE) + "\U000e0001\ud800 é 日本 ░ \n"
    safe = printable(text)
    assert all(one.isprintable() or one == "\n" for one in safe)
    assert json.loads('"' + safe.replace("\n", "\\n") + '"') == text
    assert printable("é 日本 ░ 'x'\n") == "é 日本 ░ 'x'\n"


@pytest.mark.parametrize("sign", UNSAFE)
def test_messages_of_errors_are_printable(sign: str, tmp_path: Path) -> None:
    """Whatever they quote, from Python too, not only on the command line."""
    assert str(PlaceoptError(f"a{sign}b")) == f"a{printable(sign)}b"
    name = f"none{sign}.json"
    with pytest.raises(BadInput) as caught:
        read_instance(name)
    assert sign not in str(caught.value)
    nodes = tmp_path / "nodes.csv"
    nodes.write_text(f"sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,1,T{sign}4\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"nodes\.csv:2: ") as caught:
        read_openb(nodes, nodes)
    assert sign not in str(caught.value)


@pytest.mark.parametrize("sign", [sign for sign in UNSAFE if sign not in "\u200b\ufeff"])
def test_ids_and_names_have_none(sign: str, tmp_path: Path) -> None:
    """Control characters and marks of direction are refused where names are read."""
    for fields in ({"id": f"a{sign}b"}, {"id": "a", "user": f"a{sign}b"}):
        path = tmp_path / "round.json"
        document: Any = json.loads(GOLDEN.read_bytes())
        document["jobs"].append(fields)
        path.write_text(json.dumps(document))
        with pytest.raises(BadInput, match="expected 1 to 253 characters") as caught:
            read_instance(path)
        assert sign not in str(caught.value)


def test_signs_that_scripts_need_may_stand_in_names() -> None:
    """Joiners of zero width are part of words in Persian and Hindi, and of emoji."""
    assert Job(id="a", user="\u0645\u06cc\u200c\u062e \U0001f469\u200d\U0001f4bb").user


@pytest.mark.parametrize("sign", UNSAFE)
def test_output_is_printable(
    sign: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note and arguments may hold anything; JSON stays JSON, and colours pass only where they are ours."""
    path = tmp_path / "round.json"
    path.write_text(json.dumps({**json.loads(GOLDEN.read_bytes()), "note": f"a{sign}b\x1b]0;title \x1b[31mred"}))
    assert run(["show", str(path), "--json"]) == 0
    assert any(f"a{sign}b" in note for note in json.loads(capsys.readouterr().out)["notes"])
    assert run(["show", str(path)]) == 0
    plain = capsys.readouterr().out
    assert sign not in plain
    assert r"\u001b]0;title \u001b[31mred" in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["show", str(path)]) == 0
    coloured = capsys.readouterr().out
    assert sign not in coloured.replace("\x1b[", "")
    assert "\x1b[" in coloured
    assert r"\u001b]0;title" in coloured
    assert run(["solve", f"none{sign}.json"]) in (2, 3)
    assert run(["solve", GOLDEN.as_posix(), "--method", f"x{sign}"]) == 2
    done = capsys.readouterr()
    assert sign not in done.out + done.err


def test_cells_of_csv_are_no_formulas() -> None:
    """What spreadsheets would run begins with an apostrophe; numbers are left alone."""
    cells = ["=1+1", "+A1", "-A1", "@SUM", "\tx", "\rx", "-1", "-1.5e3", "+3", "a=b", "", None, -2, 0.5]
    rows = list(csv.reader(io.StringIO(csv_text([["=h", "b"], cells]), newline="")))
    assert rows[0] == ["'=h", "b"]
    assert rows[1] == [
        *("'=1+1", "'+A1", "'-A1", "'@SUM", "\\tx", "\\rx"),
        *("-1", "-1.5e3", "+3", "a=b", "", "", "-2", "0.5"),
    ]
    table = Table(name="t", columns=(Column(name="instance"),), rows=(("=cmd|'/c calc'!A1",),))
    assert as_csv(View(title="t", tables=(table,))).splitlines()[1].startswith("'=cmd")


def test_all_csv_is_written_by_one_function() -> None:
    """A writer beside it would write formulas."""
    source = Path(__file__).parents[2] / "src" / "placeopt"
    writers = [path.name for path in source.rglob("*.py") if "csv.writer(" in path.read_text(encoding="utf-8")]
    assert writers == ["tables.py"]
