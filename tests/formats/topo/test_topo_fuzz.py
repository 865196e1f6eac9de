"""Whatever a file holds, reading it ends in a result or in one of our errors, and soon."""

import random
from pathlib import Path

import pytest

from placeopt.errors import BadInput, Unsupported
from placeopt.formats.topo import read_topo

DATA = Path(__file__).parents[2] / "data" / "topo"
FILES = sorted(path for path in DATA.iterdir() if path.name != "SOURCES.md")
FILES.append(Path(__file__).parents[3] / "instances" / "topo" / "dgx1-topo-m.txt")


def attempt(path: Path, data: bytes) -> None:
    """Read it; any other exception fails the test, and so does a refusal that does not name the file."""
    path.write_bytes(data)
    message = str(path)
    try:
        read_topo([path])
    except (BadInput, Unsupported) as error:
        message = str(error)
    assert str(path) in message


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_truncated(file: Path, tmp_path: Path) -> None:
    """Cut at every 50th byte (long ones at 250 places, so that the test stays short)."""
    data = file.read_bytes()
    for end in range(0, len(data), max(50, len(data) // 250)):
        attempt(tmp_path / "x", data[:end])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_damaged(file: Path, tmp_path: Path) -> None:
    """Flipped bits, shuffled, doubled and dropped lines, digits replaced by large numbers."""
    rng = random.Random(file.name)
    data = file.read_bytes()
    for _ in range(40):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 6)):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        attempt(tmp_path / "x", bytes(damaged))
    for _ in range(15):
        lines = data.split(b"\n")
        if rng.random() < 0.5:
            rng.shuffle(lines)
        else:
            first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[first:first] = lines[second : second + rng.randint(1, 5)]
            del lines[rng.randrange(len(lines))]
        attempt(tmp_path / "x", b"\n".join(lines))
    digits = [i for i, byte in enumerate(data) if chr(byte).isdigit()]
    for _ in range(40):
        i = rng.choice(digits)
        number = rng.choice([b"0", b"-1", b"99999999999999999999", b"4294967296", b"1e9", b"9" * 5000])
        attempt(tmp_path / "x", data[:i] + number + data[i + 1 :])
