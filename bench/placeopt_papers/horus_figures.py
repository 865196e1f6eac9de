"""Horus: the figures that its tables and its text report."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from placeopt_papers.metrics import Change, Deviation, Gain, OutermostGain, Ratio, Value
from placeopt_papers.records import Constant, Kind, ReportedFigure

KEY = "horus"
MAKESPANS = {
    "large": (("fcfs", 306.9), ("pab", 277.6), ("obp", 238.6), ("horus", 212.8)),
    "small": (("fcfs", 267.3), ("pab", 250.4), ("obp", 225.3), ("horus", 204.0)),
}
DEVIATIONS = {
    "large": (("fcfs", 1.15), ("pab", 1.72), ("obp", 4.9), ("horus", 5.04)),
    "small": (("fcfs", 1.32), ("pab", 2.02), ("obp", 5.38), ("horus", 8.5)),
}
"""Table 6, of makespans over runs of the same list."""
WAITS = (("fcfs", 466.2, 463.1), ("obp", 347.8, 351.4), ("horus", 156.5, 150.1), ("horus-f", 147.6, 148.5))
"""Table 7: mean and median."""
WAIT_DEVIATIONS = (("fcfs", 327.7), ("obp", 248.9), ("horus", 130.4), ("horus-f", 126.2))
"""Table 7, over jobs."""
SLOWED = {"large": (8.2, 21.8), "small": (10.3, 30.3)}
"""6.1: least and most mean JCT over FIFO's of the three policies that co-locate, in percent."""
RMSLE = (("linear", 0.188), ("LightGBM", 0.193), ("XGBoost", 0.133), ("random forest", 0.150))
SHORT = Constant("SHORT_PART", "W-Small 0.57, W-Large 0.46", "table 6: FIFO's makespan")
MEMORY = Constant(
    "MEMORY_OF_FULL_MIB",
    "6,656",
    "figure 7: so few pairs fit on a GPU that co-located jobs lose 9 to 12 %; a job's memory and utilisation correlate "
    "by 0.95, so OBP's order, by memory, is Horus's",
)
SIZES = Constant("SIZES", "8 to 64 GPUs, 24.8 in the mean", "table 7: under FIFO most jobs wait, waits spread evenly")
LISTS = (
    "The job lists are not published: the part of short jobs is chosen so that FIFO comes near, memory so that sharing "
    "slows as little as on the testbed; it goes with utilisation (correlation 0.95), so Horus is OBP. By the paper's "
    "own quadratic two jobs gain only up to 131 % together."
)
MISSING_MIX = (
    "The list is not published: sizes, GPU memory and the moment of submission are chosen here. A step is a decision "
    "of the paper's simulator (6.2), no minute: compare parts of FIFO's wait, in whose queue no job overtakes."
)
MEMORY_BINDS = (
    "GPU memory, not published, decides here who may share, under OBP as under Horus, and both overtake: so their jobs "
    "start alike, with a linear slowdown (6.2) too. What parts them by half in the paper is not told."
)
UNMEASURED = (
    "No measured utilisation of held-out networks is public, and none is drawn in its place. The "
    "regressors are built and tested (`placeopt.predict.fit_regressor`)."
)
WEIGHTS = (
    "The chart has no numbers, and measured utilisation of networks is not public; on a modelled one the importance of "
    "a feature would be that of the model."
)
UTILISATION = "By stated utilisations, at most 100 a GPU, to the last end; the last long jobs run alone."
DRAWN_LISTS = (
    "The paper's is over runs of one list on its testbed. Here a list has the same makespan in every run, and the "
    "deviation is over five lists, one a seed."
)
QUEUES = (
    "The paper finds that k hardly changes waits and lengthens makespans slightly; here what k changes is as small, in "
    "either direction."
)
_figure = partial(ReportedFigure, KEY)


def figures() -> Iterator[ReportedFigure]:
    """Yield them in the order of the paper."""
    for name, error in RMSLE:
        yield _figure(f"rmsle-{name}", "table 4", f"RMSLE of {name}", "", error, None, "no data", UNMEASURED)
    yield _figure(
        "importance", "figure 6", "importance of the number of convolutions", "", None, None, "no data", WEIGHTS,
        said="hardly any",
    )  # fmt: skip
    for workload, reported in MAKESPANS.items():
        setting, title = f"horus-w-{workload}", f"W-{workload.title()}"
        for largest, slowed in zip((False, True), SLOWED[workload], strict=True):
            metric = OutermostGain(setting, ("pab", "obp", "horus"), "fcfs", "run_s", largest)
            what = f"{title}: {'most' if largest else 'least'} JCT loss"
            name = f"{setting}-jct-{'most' if largest else 'least'}"
            yield _figure(name, "6.1, figure 7", what, "%", slowed, metric, "fitted", LISTS, (MEMORY,))
        for policy, minutes in reported:
            what, ours = f"{title}, {policy}: makespan", Value(setting, policy, "makespan_min")
            constants = (SHORT,) if policy == "fcfs" else (SHORT, MEMORY)
            yield _figure(f"{setting}-{policy}", "table 6", what, "min", minutes, ours, "fitted", LISTS, constants)
        for policy, minutes in DEVIATIONS[workload]:
            yield _figure(
                f"{setting}-deviation-{policy}", "table 6", f"{title}, {policy}: deviation of makespans", "min",
                minutes, Deviation(setting, policy, "makespan_min"), "independent", DRAWN_LISTS,
            )  # fmt: skip
        base = reported[0][1]
        for policy, minutes in reported[1:]:
            what, ratio = f"{title}, {policy} / fcfs", Ratio(setting, policy, "fcfs", "makespan_min")
            yield _figure(
                f"{setting}-part-{policy}", "table 6", what, "x", round(minutes / base, 3), ratio, "fitted", LISTS,
                (SHORT, MEMORY), headline=policy == "horus",
            )  # fmt: skip
    yield _figure(
        "horus-utilisation", "6.1", "W-Large, horus: GPU utilisation", "%", 69.6,
        Value("horus-w-large", "horus", "utilisation_percent"), "fitted", UTILISATION, (SHORT, MEMORY),
    )  # fmt: skip
    yield _figure(
        "horus-utilisation-gain", "5.2, 6.1", "utilisation over fcfs, up to", "%", 61.5,
        Change(("horus-w-large", "horus-w-small"), "horus", ("fcfs",), "utilisation_percent", more=True), "fitted",
        UTILISATION, (MEMORY,), headline=True,
    )  # fmt: skip
    yield from _trace()


def _trace() -> Iterator[ReportedFigure]:
    """Yield table 7 and figure 9."""
    _, mean, median = WAITS[0]
    for policy, steps, _ in WAITS:
        what, wait = f"398 jobs, {policy}: mean wait", Value("horus-trace", policy, "wait_min")
        kind: Kind = "fitted" if policy == "fcfs" else "independent"
        yield _figure(f"horus-trace-{policy}", "table 7", what, "steps", steps, wait, kind, MISSING_MIX, (SIZES,))
    whole = WAIT_DEVIATIONS[0][1]
    yield _figure(
        "horus-trace-deviation-fcfs", "table 7", "398 jobs, fcfs: deviation of waits", "steps", whole,
        Value("horus-trace", "fcfs", "wait_deviation_min"), "fitted", MISSING_MIX, (SIZES,), varied=False,
    )  # fmt: skip
    for policy, steps in WAIT_DEVIATIONS[1:]:
        yield _figure(
            f"horus-trace-deviation-{policy}", "table 7", f"{policy} / fcfs: deviation of waits", "x",
            round(steps / whole, 3), Ratio("horus-trace", policy, "fcfs", "wait_deviation_min"), "independent",
            MISSING_MIX, (SIZES, MEMORY), varied=False,
        )  # fmt: skip
    for setting, place, rule in (("horus-trace", "table 7", ""), ("horus-trace-linear", "table 7, 6.2", "linear, ")):
        for policy, steps, middle in WAITS[1:]:
            for measure, what, part in (
                ("wait_min", "mean", steps / mean),
                ("wait_median_min", "median", middle / median),
            ):
                ratio = Ratio(setting, policy, "fcfs", measure)
                yield _figure(
                    f"{setting}-part-{policy}{'' if what == 'mean' else '-median'}", place,
                    f"{rule}{policy} / fcfs: {what} wait", "x", round(part, 3), ratio, "independent", MISSING_MIX,
                    (SIZES, MEMORY) if setting == "horus-trace" else (),
                    headline=(setting, policy, what) == ("horus-trace", "horus-f", "mean"),
                )  # fmt: skip
    for measure, what, place, said in (
        ("wait_min", "wait", "6.2, figure 9c", "-1"),
        ("makespan_h", "makespan", "6.2, figure 9d", ""),
    ):
        for k in (4, 5):
            gain = Gain("horus-trace", f"horus-f-k{k}", "horus-f", measure)
            stated = -1.0 if said and k == 5 else None
            text = "" if stated is not None else "longer" if measure == "makespan_h" else "alike"
            yield _figure(
                f"horus-k{k}-{measure}", place, f"{what}, k = {k} to 3", "%", stated, gain, "independent", QUEUES,
                said=text,
            )  # fmt: skip
