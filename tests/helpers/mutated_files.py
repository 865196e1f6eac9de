"""
Files of every format, and changes of them: one to four places of a valid file.

Bytes flipped, cut, doubled or put in; values of JSON replaced by others of any type and size, keys renamed, taken away
or doubled; numbers of text made endless; marks of writing direction and control characters put in; one in eight packed.
"""

import copy
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from placeopt import BadInput, read_instance, read_plan, read_scenario
from placeopt.benchmark import read_model, read_sets, read_solu
from placeopt.documents import read_bytes, read_document
from placeopt.importers import read_kubernetes, read_openb, read_slurm
from placeopt.importers.job_table import read_jobs
from placeopt.importers.topo import read_topo
from placeopt.predict import gavel_pairs
from placeopt.report.views import read_log
from placeopt.scheduling import Scheduling, named_policy
from placeopt.simulation import simulate
from placeopt.whatif import Placements

HERE = Path(__file__).parents[1]
ROOT = HERE.parent
EXAMPLES, GOLDEN, OPENB = ROOT / "examples", HERE / "data" / "golden", HERE / "importers" / "data"
TABLES, REPORTS = HERE / "data" / "jobs", HERE / "data" / "reports" / "jobs"
SCENARIO = ROOT / "instances" / "papers" / "sc17-workloads-5.json"
POLICIES = sorted((ROOT / "src" / "placeopt" / "scheduling" / "policies").glob("*.json"))[:4]
HARDWARE = sorted(path for path in (HERE / "data").glob("**/topo/*") if path.suffix != ".md")

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, 10**12, 10**18, 10**30, -(10**18), 0.5, 1e308, -0.0, "", " ",
    "x", "1", "-1", "NaN", "9" * 5000, "x" * 254, "x" * 5000, "a b", "a\nb", "a\0b", "a\x1bb", "a\x85b", "a\u202eb",
    "a\u2028b", "=1+1", "\ud800", "é", "日本", "node[0-99999999]", "1e999", "0x10", "[", "../x", "4Gi", "1:2:3", [], {},
    [[]], [None], {"": ""}, [0] * 2000, {"number": 10**12, "set": True, "infinite": False}, {"number": None},
    ["x"] * 300,
]  # fmt: skip
BITS = [
    b"\0", b"\xff", b"\x85", b"\xe2\x80\xae", b"\xef\xbb\xbf", b'"', b"'", b",", b"\n", b"\r", b"\t", b"[", b"{", b"]",
    b"}", b"=", b"-", b":", b"\\", b"<", b"&a;", b"<!--", b"#", b"9" * 5000, b"x" * 300, b"1e999", b"NaN", b"-1", b" ",
    b"%s", b"1" + b"0" * 30,
]  # fmt: skip
MPS = (
    "NAME a\nOBJSENSE\n MAX\nROWS\n N obj\n L r1\n E r2\nCOLUMNS\n M1 'MARKER' 'INTORG'\n x obj 3 r1 2\n y obj 2 r1 1\n"
    " y r2 1\n M2 'MARKER' 'INTEND'\nRHS\n b r1 4 r2 1\nRANGES\n b r1 2\nBOUNDS\n UP b x 4\n BV b y\nENDATA\n"
)
TEXTS = {
    "gavel.json": """{"v100": {"('A', 1)": {"null": 2.0, "('A', 1)": [1.0, 1.5]}}}""",
    "philly.csv": "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-07 00:00:01,60.5,8,484,11cb48\n",
    "a.gap": "2 3\n 5 1 4\n 2 6 3\n 3 2 2\n 2 3 4\n 5 6\n",
    "b.mps": MPS,
    "a.solu": "=opt= one 12\n=best= two 7  # by hand\n=bound= two 9\n",
    "a.test": "a.gap\nb.mps # a comment\ngenerate:planted-100x5x8-s0\n",
    "placements.json": json.dumps({"placements": json.loads((GOLDEN / "plan-2.json").read_bytes())["placements"]}),
}
"""Files that are written for the formats of which none is stored."""


class Format(NamedTuple):
    """A way to read: files that are valid for it, and the reader."""

    name: str
    files: tuple[Path, ...]
    read: Callable[[Path], object]


def formats(folder: Path) -> list[Format]:
    """Return all formats; ``folder`` takes the files that are made for it."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    simulate(read_scenario(SCENARIO), named_policy("fcfs"), log=folder / "log.jsonl")
    nodes, pods = OPENB / "openb_nodes.csv", OPENB / "openb_pods.csv"
    listed, jobs, tree = (EXAMPLES / name for name in ("slurm_nodes.json", "slurm_jobs.json", "topology.conf"))
    rows: list[tuple[str, list[Path], Callable[[Path], object]]] = [
        ("instance", [GOLDEN / "instance-2.json"], read_instance),
        ("plan", [GOLDEN / "plan-2.json", GOLDEN / "plan-2-some-jobs.json"], read_plan),
        ("scenario", [SCENARIO], read_scenario),
        ("scheduling policy", POLICIES, lambda path: read_document(Scheduling, path)),
        ("placements", [folder / "placements.json"], lambda path: read_document(Placements, path)),
        ("Slurm's nodes", [listed], lambda path: read_slurm(path, jobs, tree)),
        ("Slurm's jobs", [jobs], lambda path: read_slurm(listed, path, tree)),
        ("Slurm's topology", [tree], lambda path: read_slurm(listed, jobs, path)),
        ("Kubernetes", [EXAMPLES / "kubernetes.json"], lambda path: read_kubernetes([path])),
        ("hardware", HARDWARE, lambda path: read_topo([path])),
        ("openb's nodes", [nodes], lambda path: read_openb(path, pods)),
        ("openb's pods", [pods, OPENB / "openb_pods_short.csv"], lambda path: read_openb(nodes, path)),
        ("openb's times", [pods], lambda path: read_jobs(path, "openb")),
        ("a CSV table", [folder / "philly.csv"], lambda path: read_jobs(path, "philly-csv")),
        ("a table of Slurm", [TABLES / "sacct.txt"], lambda path: read_jobs(path, "sacct")),
        ("a JSON table", [REPORTS / "philly_raw.json"], lambda path: read_jobs(path, "philly")),
        ("Gavel's throughputs", [folder / "gavel.json"], lambda path: gavel_pairs(read_text(path), "v100")),
        ("GAP", [folder / "a.gap"], read_model),
        ("MPS", [folder / "b.mps"], read_model),
        ("best values", [folder / "a.solu"], read_solu),
        ("list of instances", [folder / "a.test"], lambda path: read_sets([str(path)], folder)),
        ("log of a simulation", [folder / "log.jsonl"], read_log),
    ]
    return [Format(name, tuple(files), read) for name, files, read in rows]


def read_text(path: Path) -> str:
    """Read as whoever calls a reader of text does: bounded, and as UTF-8 or not at all."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: {error}") from None


def changed_json(document: Any, draw: random.Random) -> Any:
    """Change one place of a document: another value, a key less, one renamed, a list doubled."""
    holder, key, below = None, None, document
    while isinstance(below, dict | list) and below and (holder is None or draw.random() < 0.8):
        holder = below
        key = draw.choice(list(below)) if isinstance(below, dict) else draw.randrange(len(below))
        below = holder[key]
    if holder is None:
        return copy.deepcopy(draw.choice(ODD))  # it may be changed in its turn
    what = draw.random()
    if what < 0.6:
        holder[key] = copy.deepcopy(draw.choice(ODD))
    elif what < 0.7:
        del holder[key]
    elif what < 0.8 and isinstance(holder, dict):
        name = draw.choice(ODD)
        holder[name if isinstance(name, str) else "x"] = holder.pop(key)
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[draw.randrange(len(holder))]))
    else:
        holder[key] = {"x": below} if draw.random() < 0.5 else [below]
    return document


def changed_bytes(data: bytes, draw: random.Random) -> bytes:
    """Change a stretch of bytes."""
    start = draw.randrange(len(data) + 1)
    end = min(len(data), start + draw.choice((0, 1, 1, 2, 5, 20, 200)))
    what = draw.random()
    if what < 0.4:
        return data[:start] + draw.choice(BITS) + data[end:]
    if what < 0.55:
        return data[:start] + data[end:]
    if what < 0.7:
        return data[:end] + data[start:]
    if what < 0.8:
        return data[:start] + bytes([draw.randrange(256)]) + data[start + 1 :]
    if what < 0.85:
        return data[:start]
    words = data.split(b",") if b"," in data else data.split(b" ")
    words[draw.randrange(len(words))] = draw.choice(BITS)
    return (b"," if b"," in data else b" ").join(words)


def mutated(data: bytes, is_json: bool, draw: random.Random) -> bytes:
    """Return the file with one to four changes, packed now and then, and once more then and now."""
    if is_json and draw.random() < 0.7:
        document = json.loads(data)
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            document = changed_json(document, draw)
        data = json.dumps(document, ensure_ascii=draw.random() < 0.5).encode(errors="surrogatepass")
    else:
        for _ in range(draw.choice((1, 1, 2, 4))):
            data = changed_bytes(data, draw)
    if draw.random() < 0.125:
        data = gzip.compress(data, compresslevel=1, mtime=0)
        if draw.random() < 0.3:
            data = changed_bytes(data, draw)
    return data
