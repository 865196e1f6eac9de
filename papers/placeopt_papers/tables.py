"""The tables: figures beside the papers', at varied constants, orders of policies, and ours beside their systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import fmean

from placeopt import BadInput
from placeopt.readable import amount
from placeopt.simulation import Interval, paired_interval, t_interval
from placeopt_papers.estimates import beliefs
from placeopt_papers.figures import KINDS, Figure, Order, figures, notes, orders
from placeopt_papers.markdown import Table, Value, markdown_table
from placeopt_papers.measures import MEASURES
from placeopt_papers.results import Results
from placeopt_papers.run import FACTORS, OWN, VARIED_SEEDS
from placeopt_papers.settings import PAPERS, settings

BEGIN, END = "<!-- begin: python -m placeopt_papers tables -->", "<!-- end -->"
"""Around what the page has of `block`."""
ESTIMATES = ("perfect", "predicted", "then measured", "twice wrong", "twice wrong, then measured")
RIGHT = ("theirs", "ours", "ratio", "half", "as it is", "double", "system's", "difference", *ESTIMATES)
NOTHING = 1e-9
ABOUT_ESTIMATES = """\
What policies believe, and what is true stays: `perfect`; `predicted` by GENIE's eq. 4 to 8, by Horus's regressor, by
SODA's trials and profiles; `twice wrong`: twice or half the truth, drawn by the seed for each model of GENIE, job of
Horus and service of SODA (whose trials of cores err by a standard deviation of log 2). `then measured`: what is
measured of a job that ends corrects those of its model that have not started; Horus's jobs have no model in common, and
SODA's services are profiled before. GENIE's formula errs by shape, most for recurrent models, so that shapes change
places; an error that all shapes of a model share leaves their order. SODA's trials take 60 s each, but for `perfect`.
Means of five seeds with the half width of Student's interval of 95 %."""


def figure_table(results: Results, *, main: bool = False) -> Table:
    """Return a row per figure; ``main``: those of the short table alone."""
    rows: list[tuple[Value, ...]] = []
    for figure in figures():
        if figure.main or not main:
            values = figure.ours(results)
            ratio = f"{fmean(values) / figure.theirs:.2f}" if values and figure.theirs else None
            ours = "no data" if not figure.form else _with_half(values) if values else _missing(figure.needs, results)
            row = PAPERS[figure.paper], figure.place, figure.what, _theirs(figure), ours, ratio, figure.kind
            rows.append(row if main else (*row, figure.reason))
    columns = ("paper", "where", "what", "theirs", "ours", "ratio", "kind", *(() if main else ("why",)))
    return Table("figures", "The papers' figures, and ours", columns, tuple(rows))


def sensitivity_table(results: Results) -> Table:
    """Return a row per figure and constant that it varies: ours at half, at once and at double the constant."""
    first = results.first_seeds(VARIED_SEEDS)
    rows: list[tuple[Value, ...]] = []
    for figure in figures():
        for constant in figure.constants if figure.varied else ():
            half, double = (figure.ours(results.varied(constant, factor)) for factor in FACTORS)
            if half or double:
                means = [_short(fmean(values)) if values else None for values in (half, figure.ours(first), double)]
                rows.append((PAPERS[figure.paper], constant, figure.what, _theirs(figure), *means, figure.kind))
    columns = ("paper", "constant", "what", "theirs", "half", "as it is", "double", "kind")
    return Table("sensitivity", "Figures at half and double the constants of ours", columns, tuple(rows))


def order_table(results: Results) -> Table:
    """Return a row per pair of neighbours in a paper's order of policies."""
    rows: list[tuple[Value, ...]] = []
    for order in orders():
        for better, worse in order.neighbours:
            verdict, text = judge_order(order, better, worse, results)
            why = order.reason if verdict in ("tie", "reversed") else None
            by = MEASURES[order.measure].title
            rows.append((order.setting, order.place, by, f"{better} before {worse}", text, verdict, why))
    columns = ("setting", "where", "by", "the paper's order", "here", "verdict", "why")
    return Table("orders", "The papers' orders of policies", columns, tuple(rows))


def judge_order(order: Order, better: str, worse: str, results: Results) -> tuple[str, str]:
    """
    Return ``holds``, ``tie``, ``reversed`` or ``missing`` for two policies of an order, and the two means.

    A tie means: over several seeds that the interval of the paired differences holds 0, else that the two are equal.
    """
    one = results.values(order.setting, better, order.measure, (worse,))
    other = results.values(order.setting, worse, order.measure, (better,))
    if one is None or other is None:
        return "missing", _missing([(order.setting, better), (order.setting, worse)], results)
    verdict = compare(one, other, more=MEASURES[order.measure].more)[1]
    names = {"better": "holds", "worse": "reversed", "tie": "tie"}
    return names[verdict], f"{_short(fmean(one))} to {_short(fmean(other))}"


def own_table(results: Results) -> Table:
    """Return a row per setting and measure in which ours stands beside the paper's own system, seed by seed."""
    rows: list[tuple[Value, ...]] = []
    for setting in settings().values():
        for key in setting.beside:
            measure = MEASURES[key]
            mine = results.values(setting.name, OWN, key, (setting.system,))
            theirs = results.values(setting.name, setting.system, key, (OWN,))
            if mine and theirs:
                what = f"{measure.title}, {measure.unit}".removesuffix(", ")
                difference, verdict = compare(mine, theirs, more=measure.more)
                means = _short(fmean(theirs)), _short(fmean(mine))
                rows.append((setting.name, what, setting.system, *means, difference, verdict))
    columns = ("setting", "what", "system", "system's", "ours", "difference", "ours is")
    return Table("own", f"`{OWN}` beside the papers' own systems", columns, tuple(rows))


def estimate_table(results: Results) -> Table:
    """Return a row per policy and measure that is simulated under perfect, predicted and twice wrong estimates."""
    rows: list[tuple[Value, ...]] = []
    for one in beliefs():
        for policy in one.policies:
            found = [results.values(name, policy, one.measure) if name else None for name in one.settings]
            measure = MEASURES[one.measure]
            what = f"{measure.title}, {measure.unit}".removesuffix(", ")
            rows.append((one.perfect, what, policy, *(_with_half(values) if values else None for values in found)))
    columns = ("setting", "what", "policy", *ESTIMATES)
    return Table("estimates", "Under perfect, predicted and twice wrong estimates", columns, tuple(rows))


def compare(mine: list[float], theirs: list[float], *, more: bool) -> tuple[str, str]:
    """Return the paired difference with its interval of 95 %, and if ours is ``better``, ``worse`` or a ``tie``."""
    interval = paired_interval(mine, theirs)
    if interval is None:  # one seed, or the same difference in all
        interval = Interval(*(fmean(mine) - fmean(theirs),) * 3)
    mean = 0.0 if abs(interval.mean) < NOTHING else interval.mean
    text = f"{'+' if mean > 0 else '-' if mean < 0 else ''}{_short(abs(mean))}"
    if interval.high - interval.mean > NOTHING:
        text += f" ± {_short(interval.high - interval.mean)}"
    if mean == 0 or (interval.low <= 0 <= interval.high):
        return text, "tie"
    return text, "better" if (mean > 0) == more else "worse"


def block(results: Results) -> str:
    """Return what the page has between its markers: the main figures, ours beside the papers' systems, estimates."""
    own, estimated = own_table(results), estimate_table(results)
    count = Counter(row[-1] for row in own.rows)
    causes = notes()["behind"]
    worse = "".join(f"\n- {row[0]}, {row[1]}: {causes[row[0]]}" for row in own.rows if row[-1] == "worse")
    standing = (
        f"Of {len(own.rows)} figures `{OWN}` is better in {count['better']}, tied in {count['tie']}, worse in "
        f"{count['worse']}{':' if worse else ''}\n{worse}"
    ).rstrip()
    kinds = "".join(f"- `{kind}`: {words}.\n" for kind, words in KINDS.items())
    believed = f"## {estimated.title}\n\n{ABOUT_ESTIMATES}\n\n{markdown(estimated)}"
    main = markdown(figure_table(results, main=True))
    return f"{BEGIN}\n\n{main}\n{kinds}\n## {own.title}\n\n{standing}\n\n{markdown(own)}\n{believed}\n{END}"


def with_block(page: str, made: str) -> str:
    """Return a page with what stands between its markers replaced; raises `BadInput` where there are none."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise BadInput(f"the page has no {BEGIN} ... {END}")
    return head + made + tail


def everything(results: Results) -> str:
    """Return all tables in Markdown, the reasons and the constants that they name."""
    told = notes()
    tables = (figure_table(results), sensitivity_table(results), order_table(results), own_table(results))
    parts = [f"# {table.title}\n\n{markdown(table)}" for table in tables]
    parts.append("# Why\n\n" + "".join(f"- `{key}`: {text}\n" for key, text in told["reasons"].items()))
    constants = told["constants"].items()
    parts.append(
        "# Constants\n\n"
        + "".join(f"- `{key}` = {one['value']}. Chosen by: {one['chosen']}.\n" for key, one in constants)
    )
    return "\n".join(parts)


def markdown(table: Table) -> str:
    """Return a table whose source reads as plain text too."""
    return markdown_table(table.columns, table.rows, right=RIGHT, aligned=True, unknown="")


def _theirs(figure: Figure) -> str:
    return figure.said if figure.theirs is None else f"{figure.theirs:g} {figure.unit}".rstrip()


def _missing(needed: Iterable[tuple[str, str]], results: Results) -> str:
    """Return why a value is missing: what was not run, or jobs that never end, of which no mean is taken."""
    told: dict[str, None] = {}
    for setting, policy in needed:
        rows = results.rows(setting, policy)
        if not rows:
            told["not run"] = None
        for row in rows[:1] if rows and rows[0].never_end else ():
            told[f"under {policy} {row.never_end:,} of {row.jobs:,} jobs never end ({row.why})"] = None
    return "; ".join(told)


def _with_half(values: list[float]) -> str:
    """Return the mean, with the half width of its 95 % interval if there are several seeds."""
    interval, mean = t_interval(values), fmean(values)
    return _short(mean) if interval is None else f"{_short(mean)} ± {_short(interval.high - mean)}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 100 else amount(value, 3)
