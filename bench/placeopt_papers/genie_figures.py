"""GENIE: the figures that its evaluation reports."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from placeopt_papers.metrics import BetweenSettings, Change, Gain, Ratio, Value, Worked
from placeopt_papers.records import Constant, ReportedFigure
from placeopt_papers.scenarios.genie import ErrorPart, formula_error

KEY = "genie"
OURS = "genie"
BASELINES = ("fcfs", "capacity", "min-min", "weighted-fair", "tetris-perf", "tetris-cer")
DENSITIES = (5, 10, 20)
MORE_DENSITIES = (15, 25)
MIXES = ((10, 40, 50), (20, 40, 40))
HOURS = (12, 48)
NODES = (8, 16, 32)
"""32 to 128 GPUs; the other settings have 16."""
DENSE = tuple(f"genie-{density}" for density in DENSITIES)
SENSITIVE = (*DENSE, *(f"genie-{density}" for density in MORE_DENSITIES))
LARGE = ("genie-20", *(f"genie-gpus-{4 * nodes}" for nodes in NODES))
WHOLE = {density: f"genie-{density}-placements" for density in DENSITIES[:2]}
"""Settings in which tasks have every placement that algorithm 1 generates, by density."""
LOAD = Constant(
    "TRAINING_H",
    "0.5 to 9.5 h, uniform",
    "figure 13b: makespans of dozens to a hundred hours at up to 20 tasks an hour",
)
UNPUBLISHED = (
    "Batches, iterations and so the load are not published, nor the rates measured; 'best baseline' is the best of all "
    "that are built, by the mean over seeds in each setting, and the largest change over the settings counts."
)
ONE = (
    "As above, of one setting; the paper states no number for it, only the largest. Baselines without rates place in "
    "the most valuable shape that fits, which the paper does not state, and so are better here, in makespan above all."
)
SHAPES = (
    "min-min takes the earliest ECT first in the most valuable shape that fits, so urgent tasks, which are late "
    "whatever happens, and prior ones are fast when GPUs are idle. The paper has it below GENIE at every density."
)
EVERY = (
    "As the setting with 1, 2 and 4 nodes and GPUs of each, with all 16 placements <n, g> that line 3 of algorithm 1 "
    "generates: those with 3 use GPUs that others leave idle. Five seeds."
)
CHARTS = (
    "The paper's chart has no numbers; GENIE's own policy, one seed. On one GPU each, 15 tasks an hour are work for 50 "
    "GPUs here, so the queue of 16 grows with the hours."
)
NORMALISED = (
    "Mean of latency, with waiting, over that on one GPU (eq. 15, 16). The paper's chart has no numbers, but GENIE and "
    "Tetris+CER alike."
)
OTHER_RATES = (
    "The paper's formula fitted by its lightweight profiling to published rates of the same six models on K80 "
    "(genie_rates.csv), all placements and batches; the paper's own measurements are not public. lstm and seq2seq, "
    "whose steps are mostly communication, are off most; the paper's charts show Inception-v3 and ResNet-50."
)
OVERHEAD = "CPU time of decisions over the simulated makespan; another machine and language."
ERRORS: tuple[tuple[str, str, ErrorPart, str], ...] = (
    ("mean", "mean error of predicted rates", "mean", "< 5 %"),
    ("mean-cnn", "the same, without lstm and seq2seq", "mean of CNNs", "< 5 %"),
    ("p95", "95th percentile of errors", "p95", "< 11 %"),
    ("p95-cnn", "the same, without lstm and seq2seq", "p95 of CNNs", "< 11 %"),
)
MEASURED = (("in_time_percent", "in time", True), ("makespan_h", "makespan", False))
_figure = partial(ReportedFigure, KEY)


def figures() -> Iterator[ReportedFigure]:
    """Yield them in the order of the paper."""
    for name, place, settings, quality, makespan in (
        ("density", "7.2.1, figure 13", DENSE, 67.4, -28.2),
        ("sensitivity", "7.2.2, figure 14", SENSITIVE, 67.5, -39.3),
        ("gpus", "7.3, figure 17", LARGE, 46.5, -20.8),
    ):
        for measure, what, more in MEASURED:
            yield _figure(
                f"genie-{name}-{measure}", place, f"{what} over the best baseline, up to", "%",
                quality if more else makespan, Change(settings, OURS, BASELINES, measure, more), "fitted", UNPUBLISHED,
                (LOAD,), varied=False, headline=name == "density",
            )  # fmt: skip
    for setting, place, title in (
        *((f"genie-{d}", "7.2.1, figure 13", f"{d} an hour") for d in DENSITIES),
        *((f"genie-{d}", "figure 14a, b", f"{d} an hour") for d in MORE_DENSITIES),
        *((_mix(mix), "figure 14c, d", "/".join(map(str, mix))) for mix in MIXES),
        *((f"genie-hours-{h}", "figure 14e, f", f"{h} h") for h in HOURS),
        *((f"genie-gpus-{4 * n}", "7.3, figure 17", f"{4 * n} GPUs") for n in NODES),
    ):
        for measure, what, more in MEASURED:
            change = Change((setting,), OURS, BASELINES, measure, more)
            said = "above 0" if more else "below 0"
            title_ = f"{title}: {what} over the best"
            yield _figure(
                f"genie-{setting}-{measure}", place, title_, "%", None, change, "fitted", ONE, (LOAD,), said=said,
                varied=setting in DENSE,
            )  # fmt: skip
    for density, whole in WHOLE.items():
        for measure, what, more in MEASURED:
            yield _figure(
                f"{whole}-{measure}", "algorithm 1, line 3", f"{density} an hour, all shapes: {what}, best", "%",
                None, Change((whole,), OURS, BASELINES, measure, more), "fitted", EVERY, (LOAD,),
                said="above 0" if more else "below 0", varied=False,
            )  # fmt: skip
            what = f"{density} an hour, genie: {what}, all to few"
            yield _figure(
                f"{whole}-{measure}-to-few", "algorithm 1, line 3", what, "%",
                None, BetweenSettings(whole, f"genie-{density}", OURS, measure), "fitted", EVERY, (LOAD,), said="-",
                varied=False,
            )  # fmt: skip
    for density in DENSITIES:
        gain = Gain(f"genie-{density}", OURS, "min-min", "in_time_percent")
        yield _figure(
            f"genie-min-min-{density}", "7.2.1, figure 13a", f"{density} an hour: in time over min-min", "%", None,
            gain, "fitted", SHAPES, (LOAD,), said="above 0", varied=density == DENSITIES[0],
        )  # fmt: skip
        yield _figure(
            f"genie-normalised-{density}", "7.2.1, figure 13c", f"{density} an hour: latency to tetris-cer", "x", None,
            Ratio(f"genie-{density}", OURS, "tetris-cer", "normalised"), "fitted", NORMALISED, (LOAD,), said="alike",
            varied=False,
        )  # fmt: skip
    base = "genie-15"
    for one in (*map(_mix, MIXES), *(f"genie-hours-{h}" for h in HOURS)):
        urgent = "classes" in one
        for measure, what, _ in MEASURED:
            said = ("falls" if urgent else "alike") if measure == "in_time_percent" else ""
            said = said or ("-" if urgent else "rises")
            change_ = BetweenSettings(one, base, OURS, measure)
            short = one.removeprefix("genie-").replace("classes-", "").replace("-", " ")
            place = "figure 14c, d" if urgent else "figure 14e, f"
            yield _figure(
                f"genie-trend-{one}-{measure}", place, f"{what}, {short} to 24 h of 5/35/60", "%", None, change_,
                "fitted", CHARTS, (LOAD,), said=said, varied=False,
            )  # fmt: skip
    for name, what, part, said in ERRORS:
        yield _figure(
            f"genie-error-{name}", "5.1.5, figures 8, 15", what, "%", None, Worked(partial(formula_error, part)),
            "independent", OTHER_RATES, said=said, headline=name == "mean",
        )  # fmt: skip
    yield _figure(
        "genie-overhead", "7.2.4, figure 16", "20 an hour: decisions / makespan", "%", None,
        Value("genie-20", OURS, "decision_percent"), "independent", OVERHEAD, said="< 2 %",
    )  # fmt: skip


def _mix(mix: tuple[int, int, int]) -> str:
    return f"genie-classes-{'-'.join(map(str, mix))}"
