"""Questions of many rounds that were stopped: what is answered is kept, and not worked out again."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.build import instance, job, node, running
from placeopt.model import Domain, Instance, Record
from placeopt.whatif import Limits, compare, fail, parse_variants

SHORT = Limits(time_limit_s=120.0, threads=1)
Ask = Callable[..., Record]


def round_() -> Instance:
    """Two racks with a node of four GPUs each; a job of two runs on either, four wait."""
    jobs = [job(f"j{i}", gpus=2, value=10) for i in range(6)]
    nodes = [node("n0", domain="r0"), node("n1", domain="r1")]
    held = [running(jobs[0], [("n0", range(2))]), running(jobs[1], [("n1", range(2))])]
    return instance(nodes, jobs, domains=[Domain(id="r0"), Domain(id="r1")], running=held)


QUESTIONS: dict[str, Ask] = {
    "nodes": lambda base, **more: compare(base, parse_variants("nodes:n0=0-3", base), **more),
    "one more": lambda base, **more: compare(base, parse_variants("more=node,rack", base), **more),
    "fail": lambda base, **more: fail(base, "node", **more),
}


def same(answer: Record) -> dict[str, object]:
    """All of it but the time."""
    return answer.model_dump(exclude={"seconds"})


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_stopped_question_goes_on_where_it_was(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after its first answer, and with half a line of the next; then whole, as without a file, and at once."""
    ask, rows, stop = QUESTIONS[name], tmp_path / "rows.jsonl", threading.Event()

    def first(done: int, total: int) -> None:
        assert done < total
        stop.set()

    begun = ask(round_(), limits=SHORT, rows=rows, cancel=stop, on_news=first)
    assert begun.model_dump()["left"] > 0
    kept = rows.read_bytes()
    rows.write_bytes(kept + b'{"question": "')
    assert same(ask(round_(), limits=SHORT, rows=rows)) == same(ask(round_(), limits=SHORT))
    assert rows.read_bytes().startswith(kept)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("worked out again")

    monkeypatch.setattr("placeopt.live_cluster.engine.Engine.solve", never)
    again = ask(round_(), limits=SHORT, rows=rows)
    assert again.model_dump()["left"] == 0
    with pytest.raises(AssertionError, match="worked out again"):
        ask(round_(), limits=Limits(time_limit_s=21.0, threads=1), rows=rows)


def test_what_is_cut_short_is_not_kept(tmp_path: Path) -> None:
    """Stopped before anything is solved to its end: the answer says what is known, the file has nothing."""
    rows, stop = tmp_path / "rows.jsonl", threading.Event()
    stop.set()
    for ask in QUESTIONS.values():
        ask(round_(), limits=SHORT, rows=rows, cancel=stop)
    assert rows.read_bytes() == b""


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """A file that holds something else is refused, and stays as it is."""
    other = tmp_path / "notes.jsonl"
    other.write_text('{"note": 1}\n', encoding="utf-8")
    with pytest.raises(BadInput, match=r"notes\.jsonl:1: .*expected an answer of whatif"):
        QUESTIONS["nodes"](round_(), limits=SHORT, rows=other)
    assert other.read_text(encoding="utf-8") == '{"note": 1}\n'


def test_a_row_that_is_no_answer_is_named(tmp_path: Path) -> None:
    """Edited by hand, say: one line of text, and the file can be opened again."""
    path = tmp_path / "rows.jsonl"
    QUESTIONS["fail"](round_(), limits=SHORT, rows=path)
    path.write_text(path.read_text(encoding="utf-8").replace('"displaced":', '"moved":'), encoding="utf-8")
    for _ in range(2):
        with pytest.raises(BadInput, match=r"(?s)rows\.jsonl: .*displaced"):
            QUESTIONS["fail"](round_(), limits=SHORT, rows=path)
