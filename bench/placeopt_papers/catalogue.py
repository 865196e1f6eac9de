"""All settings, figures and orderings, by paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from placeopt.errors import BadArgument
from placeopt_papers import dynamoml, fgd, genie, genie_figures, horus, horus_figures, sc17, sc17_figures, soda, traces
from placeopt_papers.policies import known_policies
from placeopt_papers.records import Constant, FigureMetric, Ordering, PaperSetting, ReportedFigure

FACTORS = (0.5, 2.0)
"""On each constant that the sensitivity table varies."""
VARIED_SEEDS = 2
"""Most seeds of a setting with a constant varied."""


@dataclass(frozen=True)
class Paper:
    """A paper, or the traces, with settings, figures and orders."""

    title: str
    settings: tuple[PaperSetting, ...]
    figures: tuple[ReportedFigure, ...] = ()
    orderings: tuple[Ordering, ...] = ()


PAPERS: dict[str, Paper] = {
    sc17_figures.KEY: Paper("SC'17, topology-aware scheduling", sc17.SETTINGS, sc17.FIGURES, sc17.ORDERINGS),
    genie_figures.KEY: Paper("GENIE", genie.SETTINGS, genie.FIGURES, genie.ORDERINGS),
    horus_figures.KEY: Paper("Horus", horus.SETTINGS, horus.FIGURES, horus.ORDERINGS),
    dynamoml.KEY: Paper("DynamoML", dynamoml.SETTINGS, dynamoml.FIGURES, dynamoml.ORDERINGS),
    soda.KEY: Paper("SODA", soda.SETTINGS, soda.FIGURES, soda.ORDERINGS),
    fgd.KEY: Paper("FGD (ATC'23)", fgd.SETTINGS, fgd.FIGURES, fgd.ORDERINGS),
    traces.KEY: Paper("Real traces", traces.SETTINGS),
}
SETTINGS: dict[str, PaperSetting] = {setting.name: setting for paper in PAPERS.values() for setting in paper.settings}


def varied_name(constant: str, factor: float, setting: str) -> str:
    """Return the name of a setting with a constant multiplied."""
    return f"{setting}@{constant}x{factor:g}"


def varied_metric(metric: FigureMetric, constant: Constant, factor: float) -> FigureMetric:
    """Return the metric of the settings with a constant multiplied."""
    return metric.renamed(partial(varied_name, constant.name, factor))


def _varied(paper: Paper) -> Iterator[PaperSetting]:
    """Yield the settings of a paper with each constant multiplied that its figures vary, and the policies needed."""
    policies: dict[tuple[str, str, float], dict[str, None]] = {}
    for figure in paper.figures:
        for constant in figure.constants if figure.varied and figure.metric is not None else ():
            for setting, policy in () if figure.metric is None else figure.metric.needs:
                for factor in FACTORS:
                    policies.setdefault((setting, constant.name, factor), {})[policy] = None
    for (name, constant_name, factor), played in policies.items():
        base = SETTINGS[name]
        yield PaperSetting(
            varied_name(constant_name, factor, name),
            f"{base.title}, {constant_name} x {factor:g}",
            partial(base.make, factors={constant_name: factor}),
            tuple(played),
            (),
            seeds=base.seeds[:VARIED_SEEDS],
            seeds_most=min(VARIED_SEEDS, base.seeds_most or VARIED_SEEDS),
            reduced=base.reduced,
        )


VARIED: dict[str, dict[str, PaperSetting]] = {
    key: {setting.name: setting for setting in _varied(paper)} for key, paper in PAPERS.items()
}
"""Settings of each paper with a constant varied."""
EVERY_SETTING: dict[str, PaperSetting] = SETTINGS | {
    name: setting for varied in VARIED.values() for name, setting in varied.items()
}


def metrics_of(paper: Paper) -> Iterator[FigureMetric]:
    """Yield the metrics of a paper's figures, as they stand and with constants varied."""
    for figure in paper.figures:
        if figure.metric is None:
            continue
        yield figure.metric
        for constant in figure.constants if figure.varied else ():
            for factor in FACTORS:
                yield varied_metric(figure.metric, constant, factor)


def _measured() -> dict[tuple[str, str], set[str]]:
    measured: dict[tuple[str, str], set[str]] = {}
    for paper in PAPERS.values():
        for metric in metrics_of(paper):
            for key in metric.needs:
                measured.setdefault(key, set()).add(metric.measure)
        for ordering in paper.orderings:
            for policy in (policy for rank in ordering.ranks for policy in rank):
                measured.setdefault((ordering.setting, policy), set()).add(ordering.measure)
    return measured


FIGURE_MEASURES: dict[tuple[str, str], set[str]] = _measured()
"""(setting, policy) -> the measures of it that figures, their variations and orders use."""


def available_policies(setting: PaperSetting) -> list[str]:
    """Return the policies of a setting that exist."""
    if setting.one_at_a_time:
        return list(setting.policies)
    return [policy for policy in setting.policies if policy in known_policies()]


def select(only: Sequence[str]) -> tuple[list[str], list[PaperSetting]]:
    """
    Return the papers and the settings of names, each of a paper or a setting; all of them without names.

    Raises
    ------
    BadInput
        If a name is neither.
    """
    papers: dict[str, None] = {}
    settings: dict[str, PaperSetting] = {}
    for name in only or PAPERS:
        if name in PAPERS:
            papers[name] = None
            settings |= {setting.name: setting for setting in PAPERS[name].settings} | VARIED[name]
        elif name in EVERY_SETTING:
            papers |= {
                key: None
                for key, paper in PAPERS.items()
                if EVERY_SETTING[name] in paper.settings or name in VARIED[key]
            }
            settings[name] = EVERY_SETTING[name]
        else:
            raise BadArgument(
                f"{name!r} is neither a paper ({', '.join(PAPERS)}) nor a setting ({', '.join(SETTINGS)})"
            )
    return list(papers), list(settings.values())
