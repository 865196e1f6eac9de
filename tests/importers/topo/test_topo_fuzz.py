"""Large nonsense in the place of a topology file: refused, and soon."""

from pathlib import Path

import pytest

from helpers.cpu_limit import cpu_limit
from placeopt import BadInput, Unsupported
from placeopt.importers.topo import read_topo


@pytest.mark.parametrize(
    "data",
    [
        b"\n" * 1_000_000,
        b" " * 1_000_000 + b"x",
        b"| " * 500_000,
        b"GPU0 " * 200_000,
        b"LINK TYPE TABLE:\n" + b"0000:05:00.0 " * 80_000,
        b"Architecture: x\nCPU(s): 4\n" + b"NUMA node0 CPU(s): " + b"1," * 500_000,
        b"SwitchName=a \\\n" * 100_000,
        b"SwitchName=a Nodes=" + b"n[0-9]," * 100_000,
        b"SwitchName=a Nodes=n" + b" " * 1_000_000 + b"x",
        b"- topology: a\n  tree:" + b" " * 1_000_000 + b"x",
        b'Switch 1 "S-1"\n' + b'[1] "S-2"[1]\n' * 60_000,
        b"[" * 1_000_000,
        b"<topology " + b"a='' " * 200_000,
        b"<topology><object type='Machine' cpuset='" + b"ffffffff," * 100_000 + b"'/></topology>",
        b"<system>" + b"".join(b"<cpu numaid='%d' affinity='1'/>" % i for i in range(9_999)) + b"</system>",
        "".join(f'\nSwitch 1 "S-{i:x}"\n[1] "S-{i + 1:x}"[1]\n' for i in range(30_000)).encode()
        + b'Switch 1 "S-0"\n[2] "H-aaaaaaaaa"[1] # "a 1"\n\nSwitch 1 "S-7530"\n[2] "H-bbbbbbbbb"[1] # "b 1"\n',
    ],
    ids=range(16),
)
def test_large_nonsense_is_quick(data: bytes, tmp_path: Path) -> None:
    """About a megabyte, for which a careless pattern or loop would take minutes."""
    path = tmp_path / "x"
    path.write_bytes(data)
    message = str(path)
    try:
        with cpu_limit(30):
            read_topo([path])
    except (BadInput, Unsupported) as error:
        message = str(error)
    assert str(path) in message
