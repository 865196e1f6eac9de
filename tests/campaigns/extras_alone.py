"""
Campaign: each extra installed alone, from the wheel, in a fresh environment, and one command of it tried.

    python tests/campaigns/extras_alone.py --write FILE.md

The wheel is built from this checkout; pip takes everything else from where this machine's configuration says. Beside
what the extra is for, the command line is called: without ``cli`` it must end with code 2 and say what to install.
Ends with code 1 if anything differed.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOLVE = """
from placeopt import generate, solve
plan = solve(generate("uniform", jobs=5, nodes=2, gpus=4, seed=0), time_limit_s=20)
assert plan.status == "optimal", plan.status
"""
PARALLEL = """
from placeopt.parallel import run_parallel, workers
if __name__ == "__main__":
    with workers({name!r}, 1) as jobs:
        assert list(run_parallel(len, ["a", "bc"], jobs=jobs)) == [1, 2]
"""
TRIED = {
    "(none)": ("solve a round", SOLVE),
    "cli": (
        "generate, solve and check by commands",
        """
import subprocess, sys
for line in ("generate --spec uniform --jobs 5 --nodes 2 --gpus 4 --out round.json", "solve round.json --out plan.json",
             "check round.json plan.json"):
    subprocess.run([sys.executable, "-m", "placeopt.cli", *line.split()], check=True)
""",
    ),
    "dask": ("two tasks on a worker", PARALLEL.format(name="dask")),
    "ray": ("two tasks on a worker", PARALLEL.format(name="ray")),
    "docs": ("mkdocs --version", "import subprocess\nsubprocess.run([*PROGRAM('mkdocs'), '--version'], check=True)"),
    "kubernetes": (
        "a wrong kubeconfig is refused in words",
        """
from pathlib import Path
from placeopt.errors import BadInput
from placeopt.drivers.kubernetes.api import Api
Path("config").write_text("{}")
try:
    Api("config")
except BadInput as error:
    assert "not installed" not in str(error), error
else:
    raise AssertionError("accepted")
""",
    ),
    "onnx": (
        "features of a model",
        """
import onnx
from placeopt.predict.onnx_file import onnx_features
value = onnx.helper.make_tensor_value_info
node = onnx.helper.make_node("Relu", ["x"], ["y"])
graph = onnx.helper.make_graph([node], "g", [value("x", 1, [1, 4])], [value("y", 1, [1, 4])])
onnx.save(onnx.helper.make_model(graph), "relu.onnx")
assert onnx_features("relu.onnx")
""",
    ),
    "parquet": (
        "a table of jobs is read",
        """
import pyarrow, pyarrow.parquet
from placeopt.formats.job_table.rows import read_rows
pyarrow.parquet.write_table(pyarrow.table({"submit": [0, 60], "duration": [10, 20], "gpus": [1, 2]}), "jobs.parquet")
assert len(list(read_rows("jobs.parquet", ["submit", "gpus"]).rows)) == 2
""",
    ),
    "plot": (
        "a figure is drawn",
        """
from placeopt.formats.figure import Figure, render
def draw(axes):
    axes.plot([1, 2], [1, 2])
    return {}
figure = Figure("f", "title", "caption", (4, 3), draw, ("x",), ((1,),))
assert b"<svg" in render(figure, "svg")
""",
    ),
    "predict": (
        "a forest is fitted",
        """
from placeopt.predict.regressor import fit_regressor
assert fit_regressor("forest", [{"x": float(i), "y": 2.0 * i} for i in range(20)], "y", source="try").features == ("x",)
""",
    ),
    "serve": (
        "the service over HTTP loads",
        "import starlette, uvicorn, prometheus_client\nimport placeopt.service.http.server",
    ),
}
LEFT_OUT = ("dev",)
"""What `make test` installs."""


def install(wheel: Path, extra: str, folder: Path) -> tuple[Path, str]:
    """Return the interpreter of a fresh environment with the wheel, and why it could not be installed, if so."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    named = str(wheel) + ("" if extra == "(none)" else f"[{extra}]")
    done = subprocess.run([python, "-m", "pip", "install", "-q", "--no-compile", named], capture_output=True, text=True)
    return python, "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def tried(python: Path, extra: str, folder: Path) -> tuple[str, str]:
    """Return what the extra's own try and the command line ended in; "yes" where as it should be."""
    folder.mkdir()
    script = folder / "try.py"
    command = f"PROGRAM = lambda name: [{str(python.parent)!r} + '/' + name]\n"
    script.write_text(command + TRIED[extra][1], encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": ""}
    own = subprocess.run([python, script], cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    program = [python.parent / "placeopt", "--version"]
    shown = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    refused = shown.returncode == 2 and "pip install 'placeopt[cli]'" in shown.stderr
    line = "yes" if shown.returncode == 0 else "refused, names placeopt[cli]" if refused else f"code {shown.returncode}"
    if (shown.returncode == 0) < (extra == "cli"):
        line = f"wrong: {line}"
    return ("yes" if own.returncode == 0 else f"wrong: {(own.stderr.strip().splitlines() or ['?'])[-1]}"), line


def row(wheel: Path, extra: str) -> str:
    """Install one extra alone and try it; return its line."""
    with tempfile.TemporaryDirectory(prefix="placeopt-extra-") as name:
        folder = Path(name)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        python, fault = install(wheel, extra, folder / "venv")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if fault:
            return f"| {extra} | - | - | {TRIED[extra][0]} | wrong: {fault} | - |\n"
        lib = folder / "venv" / "lib"
        listed = [
            found for found in lib.glob("*/site-packages/*.dist-info") if not found.name.startswith(("pip-", "setupt"))
        ]
        own, line = tried(python, extra, folder / "work")
        return f"| {extra} | {len(listed)} | {cpu_s:.0f} | {TRIED[extra][0]} | {own} | {line} |\n"


def main() -> int:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description="Each extra installed alone and tried.")
    parser.add_argument("--only", help="extras, by commas; all by default")
    parser.add_argument("--write", type=Path, help="file to write as well")
    arguments = parser.parse_args()
    stated = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    missing = stated - set(TRIED) - set(LEFT_OUT)
    assert not missing, f"no try for {missing}"
    text = (
        "# Each extra alone\n\nBy `python tests/campaigns/extras_alone.py --write FILE.md` on "
        f"{platform.machine()} {platform.system()}, Python {platform.python_version()}: the wheel of this checkout "
        f"with one extra in a fresh environment. Left out: {', '.join(LEFT_OUT)}, which `make test` installs.\n\n"
        "| extra | packages | CPU seconds to install | tried | worked | `placeopt --version` |\n"
        "|---|---|---|---|---|---|\n"
    )
    print(text, end="", flush=True)
    with tempfile.TemporaryDirectory(prefix="placeopt-wheel-") as name:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", name]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = Path(name).glob("*.whl")
        for extra in arguments.only.split(",") if arguments.only else TRIED:
            line = row(wheel, extra)
            print(line, end="", flush=True)
            text += line
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
    return int("wrong" in text)


if __name__ == "__main__":
    sys.exit(main())
