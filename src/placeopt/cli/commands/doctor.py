"""``placeopt doctor``: versions and trials of the installation."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from placeopt.cli.output import ExitCode, show, write_out
from placeopt.environment import usable_cores

PACKAGES = (
    *("placeopt", "ortools", "highspy", "pulp", "numpy", "networkx", "pydantic", "joblib"),
    *("typer", "rich", "defusedxml"),
)
EXTRAS = {
    ("dask", "distributed"): "runs on dask",
    ("ray", "ray"): "runs on ray",
    ("serve", "starlette"): "calls over HTTP",
    ("serve", "uvicorn"): "calls over HTTP",
    ("serve", "prometheus_client"): "metrics of the service",
    ("kubernetes", "kubernetes"): "drivers of Kubernetes",
    ("mcp", "mcp"): "the judge as a tool of assistants",
    ("parquet", "pyarrow"): "tables of jobs in Parquet",
    ("predict", "sklearn"): "regressors of predictors",
    ("predict", "onnx"): "features of models",
}
"""(Extra, its package) -> what needs it."""
IMPORT_ORDERS = (("highspy", "ortools.sat.python.cp_model"), ("ortools.sat.python.cp_model", "highspy"))
"""Some versions of the two cannot be loaded into one process, in one order or in both."""

NEEDED = ("cpsat", "highs")
"""Required solvers; others are optional."""

TRIAL_S = 30.0


class Finding(NamedTuple):
    """One point: what was examined, the result, the problem (empty if there is none), and whether it is there."""

    what: str
    fact: str
    problem: str = ""
    there: bool = True

    @property
    def verdict(self) -> str:
        """In a word: ``ok``, ``wrong``, or ``none`` for an extra that is not installed."""
        return "wrong" if self.problem else "ok" if self.there else "none"


def examine() -> list[Finding]:
    """Return all findings; takes a second or two, and starts processes."""
    return [
        Finding("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        *(_package(name) for name in PACKAGES),
        *(_extra(name, package) for name, package in EXTRAS),
        _search(),
        _cores(),
        *_memory(),
        *_solvers(),
        *(_import_order(order) for order in IMPORT_ORDERS),
    ]


def _package(name: str) -> Finding:
    try:
        return Finding(name, version(name))
    except PackageNotFoundError:
        return Finding(name, "missing", f"is not installed; pip install {name}")


def _extra(name: str, package: str) -> Finding:
    """Return the version of an optional package."""
    what = f"extra {name}"
    try:
        return Finding(what, f"{package} {version(package)}")
    except PackageNotFoundError:
        return Finding(what, f"{package} is not installed; {EXTRAS[name, package]} need placeopt[{name}]", there=False)


def _search() -> Finding:
    """Return whether the local search is compiled: both forms take the same steps, one of them slowly."""
    from placeopt.search import is_compiled

    slow = "not compiled: the same steps, some 100 times slower; install placeopt again where there is a C compiler"
    return Finding("local search", "compiled" if is_compiled() else slow, there=is_compiled())


def _cores() -> Finding:
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    facts = [f"{os.cpu_count()} in the machine"]
    if affinity is not None:
        facts.append(f"{affinity} by affinity")
    quota = _first_line("/sys/fs/cgroup/cpu.max")
    facts.append(f"quota {quota}" if quota and not quota.startswith("max") else "no quota")
    return Finding("cores", f"{usable_cores()} usable ({', '.join(facts)})")


def _memory() -> list[Finding]:
    amounts = []
    for line in (_text("/proc/meminfo") or "").splitlines():
        name, _, amount = line.partition(":")
        if name in ("MemTotal", "MemAvailable"):
            amounts.append(f"{int(amount.split()[0]) // 1024:,} MiB {'in all' if name == 'MemTotal' else 'available'}")
    limits = []
    group = _first_line("/sys/fs/cgroup/memory.max")
    limits.append(f"control group {int(group) >> 20:,} MiB" if group and group.isdigit() else "no control group limit")
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    limits.append("address space unlimited" if soft == resource.RLIM_INFINITY else f"address space {soft >> 20:,} MiB")
    return [Finding("memory", ", ".join(amounts) or "unknown"), Finding("memory limits", ", ".join(limits))]


def _solvers() -> list[Finding]:
    """Try every installed solver; the required ones must be installed."""
    from placeopt.solvers.registry import SOLVERS, available

    findings = [_solver(name) for name in available()]
    lacking = [name for name in SOLVERS if name not in available()]
    findings += [
        Finding(f"solver {name}", "missing", "its package is not installed") for name in NEEDED if name in lacking
    ]
    optional = [name for name in lacking if name not in NEEDED]
    return (
        [*findings, Finding("further solvers", f"not installed: {', '.join(optional)}", there=False)]
        if optional
        else findings
    )


def _solver(name: str) -> Finding:
    """Start a solver process and have it solve the smallest model: maximise x up to 1."""
    from placeopt.linear import ModelBuilder
    from placeopt.solvers.pool import Worker
    from placeopt.solvers.result import SolveOptions

    what = f"solver {name}"
    builder = ModelBuilder()
    columns = builder.add_variables(0, 1, 1)
    builder.set_objective(columns, [1], "max")
    started = time.monotonic()
    with Worker() as worker:
        solution = worker.solve(name, builder.build(), SolveOptions(time_limit_s=5.0), deadline=started + TRIAL_S)
    spent = time.monotonic() - started
    if solution.status != "optimal" or solution.objective != 1:
        why = solution.message or f"{solution.status}, limit {solution.limit}"
        return Finding(what, "failed", f"its process did not solve a model of one variable: {why}")
    return Finding(what, f"process started and solved in {spent:.2f} s")


def _import_order(order: tuple[str, str]) -> Finding:
    short = " then ".join(name.split(".")[0] for name in order)
    what = f"import {short}"
    program = f"import {order[0]}, {order[1]}, highspy; highspy.Highs().run()"
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=TRIAL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(what, "failed", f"cannot be tried: {error}")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Finding(what, "failed", f"fails ({last}); pip install 'highspy>=1.13,<1.15'")
    return Finding(what, "fine")


def _first_line(path: str) -> str | None:
    lines = (_text(path) or "").splitlines()
    return lines[0] if lines else None


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return None


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> int:
    """
    Print versions, solvers, cores and memory limits; try a solver process and both import orders.

    Exit code 1: something is wrong; the problem is printed.
    """
    findings = examine()
    problems = [finding.problem for finding in findings if finding.problem]
    if as_json:
        import json

        facts = {finding.what: finding.fact for finding in findings}
        write_out(json.dumps({"ok": not problems, "facts": facts, "problems": problems}, indent=2) + "\n")
    else:
        from rich.text import Text

        from placeopt.report.text.palette import BAD, GOOD, SO_SO
        from placeopt.report.text.text_table import TextTable

        styles = {"ok": GOOD, "none": SO_SO, "wrong": BAD}
        rows: list[list[str | Text]] = [
            [
                Text(finding.verdict, style=styles[finding.verdict]),
                finding.what,
                finding.problem or finding.fact,
            ]
            for finding in findings
        ]
        verdict = "all is well" if not problems else f"{len(problems)} of {len(findings)} points are wrong"
        show(TextTable(["", "", ""], rows, wrap=""), Text(verdict, style="bold"))
    return ExitCode.NO if problems else ExitCode.DONE
