"""
Small files that become large, and large ones of nothing: each must be refused in 20 s and 3 GiB, a large round's needs.

Every bomb is read in a process of its own, which notes its largest resident memory after the imports and again at the
end. Files are made by other processes: what a process starts inherits the mark of its largest memory. A bomb that is
read, ends in another error than ``BadInput``, takes longer or needs more is a fault; the seconds are of CPU.
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # it is run as a program, too

from campaigns.harness import Campaign, Case

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "instance-2.json"
MIB = 1 << 20
MOST_CPU_S, MOST_MIB = 20.0, 3072.0


class Bomb(NamedTuple):
    """A file that must be refused: what it is, who reads it, and its bytes."""

    name: str
    reader: str
    data: Callable[[], bytes]


def packed(text: bytes, *, level: int = 6) -> bytes:
    """Compress as anybody would."""
    return gzip.compress(text, compresslevel=level, mtime=0)


def under(path: str, inner: bytes) -> bytes:
    """Write the golden round with ``inner`` as the value at ``path``, such as ``cluster.nodes``."""
    document: Any = json.loads(GOLDEN.read_bytes())
    *above, last = path.split(".")
    holder = document
    for step in above:
        holder = holder[int(step)] if isinstance(holder, list) else holder[step]
    holder[int(last) if isinstance(holder, list) else last] = "@@here@@"
    return json.dumps(document).encode().replace(b'"@@here@@"', inner)


def many(path: str, entry: bytes, number: int) -> Callable[[], bytes]:
    """Write the golden round with a list of that many equal entries, and one more, at ``path``."""
    return lambda: under(path, b"[" + (entry + b",") * number + entry + b"]")


def gibibyte(pattern: bytes) -> bytes:
    """Compress 1 GiB of a pattern without holding it: equal members, one after another."""
    member = packed(pattern * (16 * MIB // len(pattern)))
    return member * 64


def keys(number: int, *, equal: bool = False) -> bytes:
    """Write an object of so many keys."""
    return b"{" + b",".join(b'"k%d":0' % (0 if equal else i) for i in range(number)) + b"}"


def mixed() -> bytes:
    """Compress 1 GiB of empty objects and random digits to a little less than a hundredth of it."""
    draw = random.Random(0)
    block = b"".join(b'{"a":%d},%s' % (draw.getrandbits(40), b"{}," * 1_000) for _ in range(11_000))
    return packed(b'{"jobs":[' + block) + packed(block) * 31


ENTITIES = (
    b'<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY a%d "%s">' % (i, b"&a%s;" % (b"" if i == 0 else b"%d" % (i - 1)) * 10) for i in range(12))
    + b"]><topology>&a11;</topology>"
)
OPENB_NODES = b"sn,cpu_milli,memory_mib,gpu,model\n"
TABLE = b"timestamp,duration,num_gpus,gpu_time,cluster\n"

BOMBS = [
    Bomb("1 GiB of blanks", "instance", lambda: gibibyte(b" ")),
    Bomb("1 GiB of zero bytes", "instance", lambda: gibibyte(b"\0")),
    Bomb("`{},` thirty million times", "instance", lambda: packed(many("jobs", b"{}", 30_000_000)())),
    Bomb("1 GiB of `[`", "instance", lambda: gibibyte(b"[")),
    Bomb("`[]` nested 4,000,000 deep, plain", "instance", lambda: b"[" * 4_000_000 + b"]" * 4_000_000),
    Bomb('`{"a":` nested 100,000 deep', "instance", lambda: packed(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)),
    Bomb("a name of 1 GiB", "instance", lambda: gibibyte(b"x")),
    Bomb("a name of 64 MiB, plain", "instance", lambda: under("name", b'"' + b"x" * (64 * MIB) + b'"')),
    Bomb("an object of 1,000,000 keys, plain", "instance", lambda: under("policy", keys(1_000_000))),
    Bomb("a key that stands 1,000,000 times, plain", "instance", lambda: under("policy", keys(1_000_000, equal=True))),
    Bomb("300,000 jobs, a key twice in each, plain", "instance", many("jobs", b'{"a":0,"a":0}', 300_000)),
    Bomb("a number of 16,000,000 digits, plain", "instance", lambda: under("now_ms", b"9" * 16_000_000)),
    Bomb("a number of 1 GiB", "instance", lambda: gibibyte(b"9")),
    Bomb("2,400,000 empty jobs, plain", "instance", many("jobs", b"{}", 2_400_000)),
    Bomb("10,000,000 empty jobs, plain", "instance", many("jobs", b"{}", 10_000_000)),
    Bomb("2,400,000 numbers as nodes, plain", "instance", many("cluster.nodes", b"0", 2_400_000)),
    Bomb("2,400,000 lists as running, plain", "instance", many("running", b"[]", 2_400_000)),
    Bomb("1,000,000 empty GPUs, plain", "instance", many("cluster.machines.0.gpus", b"{}", 1_000_000)),
    Bomb("1,000,000 empty options, plain", "instance", many("jobs.0.options", b"{}", 1_000_000)),
    Bomb("80,000 wrong jobs, plain", "instance", many("jobs", b"{}", 80_000)),
    Bomb("gzip of gzip of 1 GiB", "instance", lambda: packed(gibibyte(b" "))),
    Bomb("1 GiB of blanks, cut off", "instance", lambda: gibibyte(b" ")[:-10]),
    Bomb("500,000 empty gzip files in one", "instance", lambda: packed(b"") * 500_000),
    Bomb("1 GiB of empty objects and digits", "instance", mixed),
    Bomb("`{},` thirty million times as a plan", "plan", lambda: packed(b'{"placements":[' + b"{}," * 30_000_000)),
    Bomb(
        "`{},` thirty million times as a scenario", "scenario", lambda: packed(b'{"arrivals":[' + b"{}," * 30_000_000)
    ),
    Bomb("`{},` thirty million times as pods", "kubernetes", lambda: packed(b'{"items":[' + b"{}," * 30_000_000)),
    Bomb("2,000,000 empty pods, plain", "kubernetes", lambda: b'{"items":[' + b"{}," * 2_000_000 + b"{}]}"),
    Bomb("`{},` thirty million times as Slurm's jobs", "slurm", lambda: packed(b'{"jobs":[' + b"{}," * 30_000_000)),
    Bomb("1 GiB of line ends as a node list", "openb", lambda: gibibyte(b"\n")),
    Bomb("6,000,000 empty rows of nodes, plain", "openb", lambda: OPENB_NODES + b"\n" * 6_000_000),
    Bomb("a row of 30,000,000 commas, plain", "openb", lambda: OPENB_NODES + b"," * 30_000_000),
    Bomb("an open quote before 16 MiB, plain", "table", lambda: TABLE + b'"' + b"x\n" * (8 * MIB)),
    Bomb("entities in entities", "topo", lambda: ENTITIES),
    Bomb("16 MiB of XML elements, plain", "topo", lambda: b"<topology>" + b"<a/>" * (4 * MIB - 10)),
    Bomb("1 GiB of XML elements", "topo", lambda: gibibyte(b"<a/>")),
    Bomb("40,000,000 numbers as a GAP, plain", "gap", lambda: b"9 9 " + b"0 " * 40_000_000),
    Bomb("1 GiB of line ends as an MPS", "mps", lambda: gibibyte(b"\n")),
    Bomb("6,000,000 line ends as best values, plain", "solu", lambda: b"\n" * 6_000_000),
]


def readers() -> dict[str, Callable[[Path], object]]:
    """Return all readers by name."""
    from placeopt import read_instance, read_plan, read_scenario
    from placeopt.benchmark import read_model, read_solu
    from placeopt.importers import read_kubernetes, read_openb, read_slurm
    from placeopt.importers.job_table import read_jobs
    from placeopt.importers.topo import read_topo

    nodes = Path(__file__).parents[2] / "examples" / "slurm_nodes.json"
    return {
        "instance": read_instance,
        "plan": read_plan,
        "scenario": read_scenario,
        "kubernetes": lambda path: read_kubernetes([path]),
        "slurm": lambda path: read_slurm(nodes, path),
        "openb": lambda path: read_openb(path, path),
        "table": lambda path: read_jobs(path, "philly-csv"),
        "topo": lambda path: read_topo([path]),
        "gap": read_model,
        "mps": read_model,
        "solu": read_solu,
    }


ENDINGS = {"gap": ".gap", "mps": ".mps"}


def child(reader: str, path: Path) -> None:
    """Read one file; print what came of it, seconds of CPU, and MiB beyond the imports."""
    from placeopt import PlaceoptError

    chosen = readers()[reader]
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        chosen(path)
        outcome = "read"
    except PlaceoptError as error:
        outcome = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - the finding
        outcome = f"UNTYPED {type(error).__name__}: {error}"
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps([outcome, cpu, (after.ru_maxrss - before.ru_maxrss) / 1024]))


def cases(seed: int) -> Iterator[Case]:
    """Make and read each bomb, in processes of their own."""
    del seed
    with tempfile.TemporaryDirectory() as folder:
        for number, bomb in enumerate(BOMBS):
            path = Path(folder) / f"bomb-{number}{ENDINGS.get(bomb.reader, '.json')}"
            subprocess.run([sys.executable, __file__, "--make", str(number), str(path)], check=True)
            command = [sys.executable, __file__, "--child", bomb.reader, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            path.unlink()
            if done.returncode:
                yield Case("died", [f"{bomb.name}: ended by {done.returncode}: {done.stderr[-200:]}"])
                continue
            outcome, cpu_s, mib = json.loads(done.stdout)
            faults = [] if outcome.startswith("BadInput: ") else [f"{bomb.name}: {outcome[:200]}"]
            if cpu_s > MOST_CPU_S or mib > MOST_MIB:
                faults.append(f"{bomb.name}: {cpu_s:.2f} s of CPU, {mib:.0f} MiB")
            yield Case("refused" if not faults else "wrong", faults, {"cpu_s": cpu_s, "mib": mib})


CAMPAIGN = Campaign(f"is each bomb refused in {MOST_CPU_S:.0f} s of CPU and {MOST_MIB:,.0f} MiB?", cases, len(BOMBS))

if __name__ == "__main__":  # what `cases` starts
    if sys.argv[1] == "--make":
        Path(sys.argv[3]).write_bytes(BOMBS[int(sys.argv[2])].data())
    else:
        child(sys.argv[2], Path(sys.argv[3]))
