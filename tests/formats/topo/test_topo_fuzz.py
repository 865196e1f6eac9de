"""Whatever a file holds, reading it ends in a result or in one of our errors, and soon."""

import random
import time
from pathlib import Path

import pytest

from placeopt import BadInput, Unsupported
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


@pytest.mark.parametrize(
    "data",
    [
        b"\n" * 1_000_000,
        b" " * 1_000_000 + b"x",
        b"| " * 500_000,
        b"GPU0 " * 200_000,
        b"available: 1 nodes\nnode 0 cpus:" + b" " * 1_000_000 + b"x",
        b"Architecture: x\nCPU(s): 4\n" + b"|   0  T" + b" t" * 500_000,
        b"SwitchName=a \\\n" * 100_000,
        b"SwitchName=a Nodes=" + b"n[0-9]," * 100_000,
        b'Switch 1 "S-1"\n' + b'[1] "S-2"[1]\n' * 60_000,
        b"[" * 1_000_000,
        b"<topology " + b"a='' " * 200_000,
        b"<topology><object type='Machine' cpuset='" + b"ffffffff," * 100_000 + b"'/></topology>",
        b"<system>" + b"".join(b"<cpu numaid='%d' affinity='1'/>" % i for i in range(9_999)) + b"</system>",
        "".join(f'\nSwitch 1 "S-{i:x}"\n[1] "S-{i + 1:x}"[1]\n' for i in range(30_000)).encode()
        + b'Switch 1 "S-0"\n[2] "H-aaaaaaaaa"[1] # "a 1"\n\nSwitch 1 "S-7530"\n[2] "H-bbbbbbbbb"[1] # "b 1"\n',
    ],
    ids=range(14),
)
def test_large_nonsense_is_quick(data: bytes, tmp_path: Path) -> None:
    """About a megabyte that a careless pattern or loop would need minutes for."""
    start = time.perf_counter()
    attempt(tmp_path / "x", data)
    assert time.perf_counter() - start < 60
