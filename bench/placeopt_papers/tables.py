"""The tables of ``bench papers``: figures beside the papers', orders of policies, and our policy beside the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from placeopt.formats.table import Table, Value
from placeopt.metrics import Interval, paired_interval, t_interval
from placeopt.readable import amount
from placeopt_papers.catalogue import EVERY_SETTING, FACTORS, PAPERS, VARIED_SEEDS, available_policies, varied_metric
from placeopt_papers.measures import MEASURES
from placeopt_papers.records import OWN, Ordering, PaperRow, PaperSetting, ReportedFigure, Verdict

NOTHING = 1e-9


class CampaignRows:
    """Rows of a campaign by setting, policy and seed."""

    def __init__(self, rows: Iterable[PaperRow]) -> None:
        self._rows: dict[tuple[str, str], dict[int, PaperRow]] = {}
        for row in rows:
            self._rows.setdefault((row.case.setting, row.case.policy), {})[row.case.seed] = row

    def rows(self, setting: str, policy: str) -> list[PaperRow]:
        """Return the rows in the order of seeds."""
        by_seed = self._rows.get((setting, policy), {})
        return [by_seed[seed] for seed in sorted(by_seed)]

    def values(self, setting: str, policy: str, measure: str, beside: Sequence[str] = ()) -> list[float] | None:
        """See ``SeedValues``."""
        mine = self._rows.get((setting, policy), {})
        values = [mine[seed].figures.get(measure) for seed in self.seeds(setting, (policy, *beside))]
        return None if not values or None in values else [value for value in values if value is not None]

    def first_seeds(self) -> CampaignRows:
        """Return the rows of the first seeds of every setting, as many as settings with a constant varied have."""
        return CampaignRows(
            row
            for by_seed in self._rows.values()
            for seed, row in by_seed.items()
            if seed in sorted(by_seed)[:VARIED_SEEDS]
        )

    def endless(self, needed: Iterable[tuple[str, str]]) -> list[PaperRow]:
        """Return the rows of (setting, policy) in which jobs never end."""
        return [row for setting, policy in needed for row in self.rows(setting, policy) if row.never_end]

    def seeds(self, setting: str, policies: Sequence[str]) -> list[int]:
        """Return the seeds that all of the policies have."""
        return sorted(set.intersection(*(set(self._rows.get((setting, policy), {})) for policy in policies)))


@dataclass(frozen=True)
class FigureResult:
    """
    A figure with our value.

    ``ours``: the mean over seeds with the half width of its interval, as text; ``why``: what decides it, or why it is
    missing.
    """

    figure: ReportedFigure
    values: list[float] | None
    ours: Value
    ratio: str | None
    why: str

    @property
    def reported(self) -> str:
        """The paper's value with its unit, or what it states instead."""
        figure = self.figure
        return figure.said if figure.reported is None else f"{figure.reported:g} {figure.unit}".rstrip()


def figure_result(figure: ReportedFigure, results: CampaignRows) -> FigureResult:
    """Return our value of a figure."""
    values = None if figure.metric is None else figure.metric.of(results)
    ours = None if values is None else fmean(values)
    ratio = None if ours is None or not figure.reported else f"{ours / figure.reported:.2f}"
    shown = "no data" if figure.metric is None else _with_half(values)
    return FigureResult(figure, values, shown, ratio, _reason(figure, ours, results))


def figure_table(papers: Iterable[str], results: CampaignRows) -> tuple[Table, list[str]]:
    """Return one row per figure, and the reasons that its last column numbers."""
    notes: dict[str, int] = {}
    rows: list[tuple[Value, ...]] = []
    for key in papers:
        for figure in PAPERS[key].figures:
            found = figure_result(figure, results)
            note = notes.setdefault(found.why, len(notes) + 1)
            rows.append((key, figure.place, figure.what, found.reported, found.ours, found.ratio, figure.kind, note))
    columns = ("paper", "where", "what", "paper's", "ours", "ratio", "kind", "why")
    return Table("figures", "Every figure, the papers' beside ours", columns, tuple(rows)), list(notes)


def sensitivity_table(papers: Iterable[str], results: CampaignRows) -> Table:
    """Return one row per figure and constant that it varies: our value at half, at once and at double the constant."""
    first = results.first_seeds()
    rows: list[tuple[Value, ...]] = []
    for key in papers:
        for figure in PAPERS[key].figures:
            for constant in figure.constants if figure.metric is not None and figure.varied else ():
                if figure.metric is None:
                    continue
                half, double = (_mean(varied_metric(figure.metric, constant, x).of(results)) for x in FACTORS)
                if half is None and double is None:
                    continue
                stands = _mean(figure.metric.of(first))
                found = figure_result(figure, results)
                rows.append((key, constant.name, figure.what, found.reported, half, stands, double, figure.kind))
    columns = ("paper", "constant", "what", "paper's", "half", "as it is", "double", "kind")
    return Table("sensitivity", "Figures at half and double the constants of ours", columns, tuple(rows))


def headline_table(results: CampaignRows) -> Table:
    """Return the figures marked ``headline``: paper, theirs, ours, ratio, kind."""
    rows = [
        (paper.title, f"{figure.what} ({figure.place})", found.reported, found.ours, found.ratio, figure.kind)
        for paper in PAPERS.values()
        for figure in paper.figures
        if figure.headline
        for found in (figure_result(figure, results),)
    ]
    return Table(
        "headline", "The papers' main figures", ("paper", "what", "theirs", "ours", "ratio", "kind"), tuple(rows)
    )


def _reason(figure: ReportedFigure, ours: float | None, results: CampaignRows) -> str:
    if figure.metric is None or ours is not None:
        return figure.reason
    missing = [(setting, policy) for setting, policy in figure.metric.needs if not results.rows(setting, policy)]
    endless = results.endless(figure.metric.needs)
    return _endless(endless) if endless and not missing else _lacking(missing)


def _lacking(needed: Iterable[tuple[str, str]]) -> str:
    """Return why rows of (setting, policy) are missing."""
    unbuilt = sorted(policy for setting, policy in needed if policy not in available_policies(EVERY_SETTING[setting]))
    return f"Not built yet: {', '.join(unbuilt)}." if unbuilt else "Not run."


def _endless(rows: Sequence[PaperRow]) -> str:
    """Return under which policies jobs never end, and why, as text."""
    of_policy: dict[str, PaperRow] = {}
    for row in rows:
        of_policy.setdefault(row.case.policy, row)
    reasons = (
        f"under {name} {row.never_end:,} of {row.jobs:,} jobs never end ({row.why})" for name, row in of_policy.items()
    )
    return f"No mean over all jobs: {'; '.join(reasons)}."


def _mean(values: list[float] | None) -> str | None:
    return None if values is None else _short(fmean(values))


def _with_half(values: list[float] | None) -> Value:
    """Return the mean, with the half width of its 95 % interval if there are several seeds."""
    if values is None:
        return None
    interval = t_interval(values)
    mean = fmean(values)
    if interval is None:
        return _short(mean)
    return f"{_short(mean)} ± {_short(interval.high - mean)}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 100 else amount(value, 3)


def ordering_table(papers: Iterable[str], results: CampaignRows) -> tuple[Table, list[str]]:
    """Return one row per pair of neighbours in a paper's order, and the reasons that the last column numbers."""
    notes: dict[str, int] = {}
    rows: list[tuple[Value, ...]] = []
    for key in papers:
        for ordering in PAPERS[key].orderings:
            for better, worse in neighbours(ordering):
                verdict, text = judge_order(ordering, better, worse, results)
                reason = ordering.reason if verdict in ("tie", "reversed") else ""
                note = notes.setdefault(reason, len(notes) + 1) if reason else None
                measure = MEASURES[ordering.measure].title
                rows.append(
                    (ordering.setting, ordering.place, measure, f"{better} before {worse}", text, verdict, note)
                )
    columns = ("setting", "where", "by", "the paper's order", "ours", "verdict", "why")
    return Table("orderings", "The papers' orders of policies", columns, tuple(rows)), list(notes)


def neighbours(ordering: Ordering) -> list[tuple[str, str]]:
    """Return (better, worse) for all policies of one rank and of the next."""
    ranks = ordering.ranks
    return [(a, b) for i, rank in enumerate(ranks[:-1]) for a in rank for b in ranks[i + 1]]


def judge_order(ordering: Ordering, better: str, worse: str, results: CampaignRows) -> tuple[Verdict, str]:
    """
    Return whether the order of two policies holds here, and the two means.

    A tie means: over several seeds that the interval of the paired differences holds 0, else that the two are equal.
    """
    one = results.values(ordering.setting, better, ordering.measure, (worse,))
    other = results.values(ordering.setting, worse, ordering.measure, (better,))
    if one is None or other is None:
        both = [(ordering.setting, name) for name in (better, worse)]
        lacking, endless = [key for key in both if not results.rows(*key)], results.endless(both)
        return "missing", _endless(endless) if endless and not lacking else _lacking(lacking)
    text = f"{_short(fmean(one))} to {_short(fmean(other))}"
    interval = paired_interval(one, other)
    if interval is None:
        interval = Interval(one[0] - other[0], one[0] - other[0], one[0] - other[0])
    elif not interval.excludes_zero:
        return "tie", text
    if interval.mean == 0:
        return "tie", text
    return ("holds" if (interval.mean > 0) == ordering.more else "reversed"), text


def own_table(settings: Sequence[PaperSetting], results: CampaignRows) -> Table:
    """Return for every setting and measure all policies, with the paired differences of our own from each."""
    rows: list[tuple[Value, ...]] = []
    for setting in settings:
        for measure in setting.measures:
            if not any(results.values(setting.name, own, measure) for own in OWN):
                continue
            name = f"{MEASURES[measure].title}, {MEASURES[measure].unit}".rstrip(", ")
            for policy in setting.policies:
                values = results.values(setting.name, policy, measure)
                endless = results.endless([(setting.name, policy)])
                if values is None and endless:
                    ended = f"{endless[0].jobs - endless[0].never_end:,} of {endless[0].jobs:,} jobs end"
                    rows.append((setting.name, name, policy, ended, *("" for _ in OWN)))
                elif values is not None:
                    text = [_difference_text(setting.name, own, policy, measure, results) for own in OWN]
                    rows.append((setting.name, name, policy, _with_half(values), *text))
    columns = ("setting", "measure", "policy", "its", *(f"{own} - it" for own in OWN))
    return Table("own", "placeopt's own policies beside the others", columns, tuple(rows))


def _difference_text(setting: str, own: str, policy: str, measure: str, results: CampaignRows) -> str:
    mine = results.values(setting, own, measure, (policy,))
    values = results.values(setting, policy, measure, (own,))
    if mine is None or values is None or own == policy:
        return ""
    return " ".join(compare(mine, values, more=MEASURES[measure].more))


def compare(mine: list[float], values: list[float], *, more: bool) -> tuple[str, str]:
    """Return the paired difference with its interval, and whether ours is ``better``, ``worse`` or a ``tie``."""
    interval = paired_interval(mine, values)
    if interval is None:
        difference = mine[0] - values[0]
        return f"{_signed(difference)}", _side(difference, more)
    text = f"{_signed(interval.mean)} ± {_short(interval.high - interval.mean)}"
    return text, _side(interval.mean, more) if interval.excludes_zero else "tie"


def _side(difference: float, more: bool) -> str:
    """Return the verdict on a difference; rounding errors of equal sums are a tie."""
    if abs(difference) < NOTHING:
        return "tie"
    return "better" if (difference > 0) == more else "worse"


def _signed(value: float) -> str:
    value = 0.0 if abs(value) < NOTHING else value
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{_short(abs(value))}"
