"""The change that docs/adding-an-option.md shows works as it stands there, and touches as many files as it says."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding-an-option.md"
ROUND = ROOT / "instances" / "generated" / "gangs-20x16x4-s0.json.gz"


def apply(package: Path) -> set[str]:
    """Apply the page's change to a copy of the package; return the files that it touches."""
    (block,) = re.findall(r"^```diff\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    touched = set()
    for part in re.split(r"^--- a/.*\n", block, flags=re.MULTILINE)[1:]:
        name, *hunks = re.split(r"^@@\n", part, flags=re.MULTILINE)
        file = package / name.removeprefix("+++ b/src/placeopt/").strip()
        text = file.read_text(encoding="utf-8")
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            before = "\n" + "".join(line[1:] for line in lines if line[0] in " -")
            after = "\n" + "".join(line[1:] for line in lines if line[0] in " +")
            assert before in text, f"{file.name} has changed: bring the page up to date"
            text = text.replace(before, after, 1)
        file.write_text(text, encoding="utf-8")
        touched.add(file.name)
    return touched


def test_the_change_adds_an_option(tmp_path: Path) -> None:
    """From the flag to the stage that reads the field: a plan of value 1 is enough, and without it nothing changes."""
    shutil.copytree(ROOT / "src" / "placeopt", tmp_path / "placeopt", ignore=shutil.ignore_patterns("__pycache__"))
    assert len(apply(tmp_path / "placeopt")) == 3
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    stages = []
    for given in ((), ("--enough", "1")):
        command = [sys.executable, "-m", "placeopt.cli", "solve", ROUND, "--deterministic", "--json", "--quiet", *given]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        stages.append([stage["name"] for stage in json.loads(done.stdout)["stages"]])
    assert "heuristic" in stages[1]
    assert [any(name.startswith("counts") for name in names) for names in stages] == [True, False]
