"""The state of a service: what is missing, altered or cut off is said at the start, and nothing is thrown away."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from helpers.service_child import SERVE
from placeopt import BadInput
from placeopt.documents import dumps
from placeopt.service import Refused, Service
from service.calls import ROUND, WAITING, ask, change, now

NODE = ROUND.cluster.nodes[0].id
DATABASE, WAL, LAST = "journal.sqlite", "journal.sqlite-wal", "last-change"
DELETE = "DELETE FROM entries WHERE number"
Kept = dict[str, Path]
Copied = Callable[[str], Path]


def drain(service: Service, step: str = "drain") -> None:
    """Change a node."""
    change(service, (step, {"nodes": [NODE]}))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """The folder of a service with eight changes: as an end leaves it, and as a kill does, with a WAL."""
    folder = tmp_path_factory.mktemp("kept")
    with Service(folder / "ended") as service:
        service.call("put_cluster", dumps(ROUND))
        ask(service, "decide", {"jobs": WAITING[:3]}, key="once")
        for step in ("drain", "undrain") * 3:
            drain(service, step)
        (folder / "snapshot").write_bytes(service.call("snapshot"))
        shutil.copytree(folder / "ended", folder / "killed")
    return {name: folder / name for name in ("ended", "killed", "snapshot")}


@pytest.fixture
def copied(kept: Kept, tmp_path: Path) -> Copied:
    """Makes a copy of a folder."""
    return lambda left_by: Path(shutil.copytree(kept[left_by], tmp_path / "state"))


def fault_of(state: Path) -> str:
    """Start a service, and return why it refuses; empty if it does not."""
    try:
        Service(state).close()
    except BadInput as error:
        return str(error)
    return ""


def snapshot(state: Path) -> bytes:
    """Return the snapshot of a service that is started on a folder."""
    with Service(state) as service:
        return service.call("snapshot")


def start(state: Path, **how: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    """Start a process without any call; it ends with its input."""
    return subprocess.run([*SERVE, str(state)], input="", capture_output=True, text=True, timeout=300, **how)


def files(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder with a content, but for the index of sqlite, which every start makes anew."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}
    return {name: data for name, data in found.items() if data}


def flipped(path: Path, at: bytes | int) -> None:
    """Change one bit of a file: at the last place of some bytes, or at a place, from the end if below 0."""
    data = bytearray(path.read_bytes())
    data[at if isinstance(at, int) else data.rindex(at)] ^= 1
    path.write_bytes(data)


def cut(path: Path, size: int) -> None:
    """Keep the beginning of a file."""
    path.write_bytes(path.read_bytes()[:size])


def without_rows(folder: Path, statement: str) -> None:
    """Carry out a statement on the database."""
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        database.execute(statement)


DAMAGES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "a byte of the snapshot": ("ended", "altered", lambda at: flipped(at / DATABASE, b'"jobs"')),
    "a byte of a change": ("ended", "altered", lambda at: flipped(at / DATABASE, b"undrain")),
    "a byte of a reply": ("ended", "altered", lambda at: flipped(at / DATABASE, b'"actions"')),
    "a page": ("ended", "damaged", lambda at: flipped(at / DATABASE, 4096)),
    "half of the database": ("ended", "cannot be read as a journal", lambda at: cut(at / DATABASE, 7 * 4096)),
    "the database": ("ended", "is missing, though change 8 was", lambda at: (at / DATABASE).unlink()),
    "all of the database": ("ended", "ends at change 0", lambda at: cut(at / DATABASE, 0)),
    "what it was": ("ended", "cannot be read as a journal", lambda at: (at / DATABASE).write_bytes(b"other" * 1000)),
    "the row of the snapshot": ("ended", "not the snapshot", lambda at: without_rows(at, "DELETE FROM snapshots")),
    "a change": ("ended", "is missing", lambda at: without_rows(at, f"{DELETE} = 4")),
    "the last change": ("ended", "ends at change 7", lambda at: without_rows(at, f"{DELETE} = 8")),
    "the WAL": ("killed", "ends at change 0", lambda at: (at / WAL).unlink()),
    "the end of the WAL": ("killed", "ends at change", lambda at: cut(at / WAL, (at / WAL).stat().st_size - 5000)),
    "a byte of the WAL": ("killed", "ends at change", lambda at: flipped(at / WAL, -5000)),
}
"""What is lost -> what had left the folder, what is said, and how it is lost."""


@pytest.mark.parametrize("what", DAMAGES)
def test_what_is_lost_is_said_at_the_start(copied: Copied, what: str) -> None:
    """In words with a way out; and nothing is changed, so that the right files may be put back."""
    left_by, words, damage = DAMAGES[what]
    state = copied(left_by)
    damage(state)
    before = files(state)
    said = fault_of(state)
    assert words in said
    assert "put_cluster" in said
    assert "another version" not in said
    assert files(state) == before


def test_the_command_refuses_in_words(copied: Copied) -> None:
    """With the exit code of bad input."""
    state = copied("killed")
    (state / WAL).unlink()
    found = start(state)
    assert found.returncode == 3
    assert "ends at change 0, though change 8 was answered" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("left_by", ["ended", "killed"])
def test_a_whole_folder_starts(kept: Kept, copied: Copied, left_by: str) -> None:
    """The same bytes as before, from a copy."""
    assert snapshot(copied(left_by)) == kept["snapshot"].read_bytes()


def test_what_is_left_can_be_used_where_the_loss_is_accepted(kept: Kept, copied: Copied) -> None:
    """As the message says: without the file that tells of the lost changes."""
    state = copied("ended")
    without_rows(state, f"{DELETE} = 8")
    assert f"delete {state / LAST}" in fault_of(state)
    (state / LAST).unlink()
    assert fault_of(state) == ""
    assert snapshot(state) != kept["snapshot"].read_bytes()


@pytest.mark.parametrize("left_by", ["ended", "killed"])
def test_a_full_disk_throws_nothing_away(kept: Kept, copied: Copied, left_by: str) -> None:
    """No byte can be written at the start: whatever is said, it is not that the folder should go."""
    state = copied(left_by)
    found = start(state, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert "move the folder away" not in found.stderr
    assert "Traceback" not in found.stderr
    assert found.returncode == 0 or "nothing of it was changed" in found.stderr, found.stderr
    assert snapshot(state) == kept["snapshot"].read_bytes()


def test_no_file_can_be_removed_to_let_a_second_service_in(tmp_path: Path) -> None:
    """Neither beside the database nor the database itself; without it the first one refuses changes."""
    state = tmp_path / "state"
    with Service(state) as service:
        service.call("put_cluster", dumps(ROUND))
        for path in state.iterdir():
            if not path.name.startswith(DATABASE):
                path.unlink()
        assert "another service uses it" in fault_of(state)
        drain(service)
        for path in state.iterdir():
            path.unlink()
        assert "another service uses it" in fault_of(state)
        with pytest.raises(Refused, match="was removed or replaced") as caught:
            drain(service, "undrain")
        assert caught.value.status == 503
        assert now(service).revision == 1
