"""
What errors of the papers' predictors cost: ``python bench/estimates.py --rows FILE.jsonl --out bench/estimates.md``.

Scenarios of the papers, simulated with perfect estimates, with those that the paper's predictor makes, and with errors
twice as large; what happens to a job follows the truth in all of them. Runs are appended to FILE.jsonl, and are not
repeated while scenario and policy are the same.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from placeopt.environment import usable_cores, versions
from placeopt.metrics import paired_interval
from placeopt.model import Arrival, Estimate, Scenario
from placeopt.predict import REGRESSORS
from placeopt.simulation import named_policy, simulate, summarise, with_scaled_errors
from placeopt_papers.measures import MEASURES, measure_all
from placeopt_papers.scenarios.genie import formula_error, genie_tasks
from placeopt_papers.scenarios.horus import horus_testbed, horus_trace
from placeopt_papers.scenarios.soda_month import soda_month
from placeopt_papers.scenarios.soda_profiles import PROFILE_NOISE, TRIAL_NOISE_THOUSANDTHS, with_trials
from placeopt_papers.scenarios.utilisation import held_out_rmsle, with_regressor

PERFECT = "perfect"
RUN_TIME_NOISE = math.log(2)
"""Standard deviation of the logarithm of run times where they are uncertain; ours."""
View = Callable[[int], Scenario]
"""Makes a scenario with what policies see of it, from a seed."""


@dataclass(frozen=True)
class Setting:
    """A setting with views of it, perfect estimates first, the policies that play it, and measures."""

    name: str
    title: str
    views: dict[str, View]
    policies: tuple[str, ...]
    measures: tuple[str, ...]


def with_uncertain_run_times(scenario: Scenario) -> Scenario:
    """Return a scenario in which policies believe run times that are off by a factor of two either way."""
    dice = random.Random(scenario.name)

    def uncertain(arrival: Arrival) -> Arrival:
        factor = math.exp(dice.gauss(0, RUN_TIME_NOISE))
        options = arrival.job.options
        estimates = arrival.estimates or (Estimate(),) * len(options)
        told = (
            one if option.run_time_ms is None
            else one.model_copy(update={"run_time_ms": max(1, round(option.run_time_ms * factor))})
            for one, option in zip(estimates, options, strict=True)
        )  # fmt: skip
        return arrival.model_copy(update={"estimates": tuple(told)})

    return scenario.model_copy(update={"arrivals": tuple(map(uncertain, scenario.arrivals))})


def _views(predicted: View) -> dict[str, View]:
    """Return the three views of scenarios with estimates."""
    return {
        PERFECT: lambda seed: with_scaled_errors(predicted(seed), 0),
        "predicted": predicted,
        "twice as wrong": lambda seed: with_scaled_errors(predicted(seed), 2),
    }


def _horus(plain: View) -> dict[str, View]:
    return _views(lambda seed: with_regressor(plain(seed))) | {
        "unseen family": lambda seed: with_regressor(plain(seed), "family"),
        "and run times x 2": lambda seed: with_uncertain_run_times(with_regressor(plain(seed))),
    }


def _soda(seed: int) -> Scenario:
    return soda_month(seed=seed, nodes=8, days=4)


SETTINGS = (
    *(
        Setting(
            f"horus-w-{workload}",
            f"Horus, W-{workload.title()}: utilisation by the regressor",
            _horus(partial(horus_testbed, workload=workload)),
            ("fcfs", "obp", "horus", "placeopt"),
            ("makespan_min", "run_s", "completion_s"),
        )
        for workload in ("large", "small")
    ),
    Setting(
        "horus-trace",
        "Horus, a quarter of the trace, 100 jobs on 32 nodes: utilisation by the regressor",
        _views(lambda seed: with_regressor(horus_trace(seed, jobs=100, nodes=32))),
        ("obp", "horus", "horus-f", "placeopt"),
        ("wait_min", "makespan_h", "completion_s"),
    ),
    Setting(
        "genie-5",
        "GENIE, 5 tasks an hour: rates by eq. 4 to 8",
        _views(lambda seed: genie_tasks(seed, per_hour=5, predicted=True)),
        ("min-min", "tetris-perf", "tetris-cer", "genie", "placeopt"),
        ("in_time_percent", "makespan_h", "completion_s"),
    ),
    Setting(
        "soda-month",
        "SODA, 8 nodes for 4 days: trials of cores, and profiles of services",
        {
            PERFECT: _soda,
            "trials of 60 s": lambda seed: with_trials(_soda(seed), noise=False),
            "predicted": lambda seed: with_trials(_soda(seed)),
            "twice as wrong": lambda seed: with_scaled_errors(with_trials(_soda(seed)), 2),
        },
        ("soda", "placeopt"),
        ("utilisation_of_active_percent", "gpu_at_once_percent", "completion_s", "late_percent"),
    ),
)
Key = tuple[str, str, str, int]
"""Setting, view, policy, seed."""
Figures = dict[str, float | None]


def run_all(path: Path, only: list[str], seeds: int, *, play: bool) -> dict[Key, Figures]:
    """Return the measures of every run; those in the file are not repeated, and without ``play`` no others are run."""
    known: dict[tuple[str, ...], Figures] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        row = json.loads(line)
        known[row["scenario"], row["policy"]] = row["figures"]
    found: dict[Key, Figures] = {}
    with path.open("a") as file:
        for setting, view, seed in _cases(only, seeds):
            world = setting.views[view](seed)
            for name in setting.policies:
                policy = named_policy(name)
                key = (world.digest, policy.digest)
                if key not in known and not play:
                    continue
                if key not in known:
                    began = time.process_time()
                    history = simulate(world, policy)
                    every = measure_all(summarise(history), history)
                    known[key] = {measure: every[measure] for measure in setting.measures}
                    row = {"scenario": key[0], "policy": key[1], "figures": known[key]}
                    row["what"] = f"{setting.name} {view} {name} {seed}, {time.process_time() - began:.1f} s of CPU"
                    file.write(json.dumps(row) + "\n")
                    file.flush()
                found[setting.name, view, name, seed] = known[key]
    return found


def _cases(only: list[str], seeds: int) -> Iterator[tuple[Setting, str, int]]:
    for seed in range(seeds):
        for setting in SETTINGS:
            if not only or setting.name in only:
                for view in setting.views:
                    yield setting, view, seed


def table(setting: Setting, found: dict[Key, Figures], seeds: int) -> list[str]:
    """Return the table of a setting: policies and measures by views, over the first seeds that are complete."""
    cells = [(view, policy) for view in setting.views for policy in setting.policies]
    complete = [all((setting.name, *cell, seed) in found for cell in cells) for seed in range(seeds)]
    seeds = (*complete, False).index(False)
    if not seeds:
        return [f"## {setting.title}", "", "Not run.", ""]
    lines = [
        f"## {setting.title}",
        "",
        f"Seeds 0 to {seeds - 1}.",
        "",
        f"| policy | measure | {' | '.join(setting.views)} |",
        f"|---|---|{'---:|' * len(setting.views)}",
    ]
    for policy in setting.policies:
        for key in setting.measures:
            values = {
                view: [found[setting.name, view, policy, seed].get(key) for seed in range(seeds)]
                for view in setting.views
            }
            row = [_cell(values[view], values[PERFECT] if view != PERFECT else None, key) for view in setting.views]
            lines.append(f"| {policy} | {MEASURES[key].title}, {MEASURES[key].unit} | {' | '.join(row)} |")
    return [*lines, ""]


def _cell(values: list[float | None], base: list[float | None] | None, key: str) -> str:
    """Return the mean and, beside perfect estimates, the difference seed by seed."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "-"
    text = f"{fmean(known):,.1f}"
    truth = [value for value in base or () if value is not None]
    if base is None or len(truth) < len(known):
        return text
    if truth == known:
        return f"{text} (=)"
    apart = paired_interval(known, truth) if len(known) > 1 else None
    if apart is None:
        return text
    better = (apart.mean > 0) is MEASURES[key].more
    word = ("better" if better else "worse") if apart.excludes_zero else "tie"
    return f"{text} ({apart.mean:+,.1f} ± {apart.high - apart.mean:,.1f}, {word})"


def main() -> int:
    """Simulate and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--rows", type=Path, required=True, help="file of the runs")
    parser.add_argument("--out", type=Path, help="write the tables here as well")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="settings, by commas; all if left out")
    parser.add_argument("--report", action="store_true", help="run nothing, report the seeds that are complete")
    asked = parser.parse_args()
    only = asked.only.split(",") if asked.only else []
    found = run_all(asked.rows, only, asked.seeds, play=not asked.report)
    version = ", ".join(f"{name} {one}" for name, one in versions().items())
    errors = "; ".join(
        f"{kind} {held_out_rmsle(kind):.3f}, {held_out_rmsle(kind, 'family'):.3f}" for kind in REGRESSORS
    )
    lines = [
        "# What errors of predictions cost",
        "",
        f"`python bench/estimates.py --rows FILE --seeds {asked.seeds}{f' --only {asked.only}' * bool(only)}`, "
        f"{usable_cores()} cores, Python {platform.python_version()}, {version}.",
        "",
        "Means over seeds; in brackets the difference to perfect estimates, seed by seed, with",
        "its interval of 95 %; `=`: the same in every seed. Policies see the estimates, jobs follow the truth. `twice",
        "as wrong`: the logarithm of believed over true, doubled. Scenarios: [docs/papers.md](../docs/papers.md).",
        "",
        "- Horus: its regressor (boosting) on features of ONNX graphs of 52 networks that are made layer by layer,",
        "  with three batches. Their utilisation is modelled from the work of their operators, since none that was",
        "  measured is public, so its errors are no reproduction of table 4. RMSLE on configurations left out, and on",
        f"  families of networks left out: {errors}",
        "  (paper, on measurements: linear 0.188, forest 0.150, boosting 0.133). `unseen family`: the regressor",
        "  never saw a network of the job's family. `and run times x 2`: predicted utilisation, and run times off by a",
        "  factor of two either way (one standard deviation); Horus reads none.",
        "- GENIE: eq. 4 to 8 fitted by its lightweight profiling to published rates on K80, off by "
        f"{formula_error('mean'):.0f} % in the mean, {formula_error('mean of CNNs'):.0f} % without lstm and seq2seq",
        "  (paper, on its own measurements: < 5 %). Expected completion times stay the true ones.",
        "- SODA: a trial of a number of cores lasts 60 s (VI-H). How exactly utilisation is measured in it, and how",
        f"  far profiles of services are off, is not published: {TRIAL_NOISE_THOUSANDTHS / 10:g} % and "
        f"{100 * PROFILE_NOISE:g} % (standard deviations) are ours.",
        "",
    ]
    for setting in SETTINGS:
        if not only or setting.name in only:
            lines += table(setting, found, asked.seeds)
    text = "\n".join(lines)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
