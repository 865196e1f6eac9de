"""Figures of what-if answers that are amounts: what fits, slots, nodes to add, exchanges, prices, reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeopt.benchmark.figure import COLOURS, LIGHT, Figure, Tips
from placeopt.readable import amount, plural
from placeopt.whatif.answers import Cheapest, Fit, NodesNeeded, Prices, Review, Slots, Swap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FITS = {True: COLOURS[2], False: COLOURS[1], None: COLOURS[4]}
WORDS = {True: "all jobs fit", False: "not all fit, proven", None: "not found to fit"}


WIDE = 5.0
"""Width in inches at which text of 9 points stays legible on a telephone."""


def _bars_high(count: int) -> float:
    return max(1.6, 0.35 * count + 0.9)


def _legend(axes: Axes) -> None:
    """Add a legend above the axes, where it takes no width."""
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2, columnspacing=1)


def fit_figure(answer: Fit, name: str) -> Figure:
    """Return the figure of the largest gang of such workers by level."""
    rows = [(gang.level, gang.workers, gang.gpu_milli / 1000) for gang in answer.gangs]
    more = f"{answer.found}" if answer.proven else f"{answer.found} to {answer.most}"
    binds = "; ".join(f"{constraint.name} ({constraint.asks})" for constraint in answer.binds or ())

    def draw(axes: Axes) -> Tips:
        bars = axes.barh([row[0] for row in rows], [row[2] for row in rows], color=COLOURS[0], height=0.6)
        axes.bar_label(bars, [plural(row[1], "worker") for row in rows], padding=3)
        axes.invert_yaxis()
        axes.margins(x=0.2)
        axes.set_xlabel("GPUs of the largest gang in one domain")
        return {}

    return Figure(
        name,
        f"Fit: {more} more of the job",
        "The largest gang of such workers in one domain of each level, proven."
        + (f" One more fails for: {binds}." if binds else ""),
        (WIDE, _bars_high(len(rows))),
        draw,
        ("level", "workers", "gpus"),
        rows,
    )


def slots_figure(answer: Slots, name: str) -> Figure:
    """Return the figure of slots by level and size, the number in each cell."""
    levels = list(dict.fromkeys(slot.level for slot in answer.counts))
    sizes = list(dict.fromkeys(slot.size for slot in answer.counts))
    at = {(slot.level, slot.size): slot for slot in answer.counts}
    rows = [(slot.level, slot.size, slot.slots, slot.largest) for slot in answer.counts]

    def draw(axes: Axes) -> Tips:
        from matplotlib.patches import Rectangle

        for y, level in enumerate(levels):
            for x, size in enumerate(sizes):
                count = at[level, size].slots
                part = min(1.0, count * size / max(1, answer.free_gpus))
                axes.add_patch(Rectangle((x, y), 0.94, 0.9, facecolor=COLOURS[0], alpha=0.08 + 0.8 * part, linewidth=0))
                ink = LIGHT if part > 0.6 else "black"
                axes.text(x + 0.47, y + 0.45, f"{count:,}", ha="center", va="center", fontsize=9, color=ink)
        axes.set_xlim(0, len(sizes))
        axes.set_ylim(len(levels), 0)
        axes.set_xticks([x + 0.47 for x in range(len(sizes))], [str(size) for size in sizes])
        axes.set_yticks([y + 0.45 for y in range(len(levels))], levels)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xlabel("free GPUs in a slot")
        return {}

    model = f" of model {answer.model}" if answer.model else ""
    return Figure(
        name,
        f"Slots: {answer.free_gpus:,} of {answer.gpus:,} GPUs{model} free",
        "Number of disjoint slots of that many free GPUs in the domains of each level; a darker cell holds more of the "
        "free GPUs.",
        (max(3.6, 0.5 * len(sizes) + 1.2), max(1.6, 0.4 * len(levels) + 0.7)),
        draw,
        ("level", "size", "slots", "most_free_in_one"),
        rows,
        keys=2,
    )


def _how_many(answer: NodesNeeded) -> str:
    if answer.impossible:
        return "no number of nodes is enough"
    if answer.found is None:
        return f"{plural(answer.at_least or 0, 'node')} or more"
    least = "" if answer.at_least in (None, answer.found) else f"{answer.at_least} to "
    return f"{least}{answer.found} node{'' if answer.found == 1 else 's'}"


def added_figure(answer: NodesNeeded, name: str) -> Figure:
    """Return the figure of the GPU demand that still waits for each number of nodes tried."""
    tried = sorted(answer.tried, key=lambda trial: trial.nodes)
    rows = [(trial.nodes, trial.waiting, trial.gpu_milli_waiting / 1000, WORDS[trial.fits]) for trial in tried]

    def draw(axes: Axes) -> Tips:
        tips = {}
        seen = set()
        for i, (trial, row) in enumerate(zip(tried, rows, strict=True)):
            label = "_" if trial.fits in seen else WORDS[trial.fits]
            seen.add(trial.fits)
            axes.plot([row[0]], [row[2]], "o", color=FITS[trial.fits], label=label, gid=f"{name}-{i}", clip_on=False)
            tips[f"{name}-{i}"] = (
                f"{plural(row[0], 'node')}: {plural(row[1], 'job')} waiting, {amount(row[2])} GPUs; {row[3]}"
            )
        if answer.at_least is not None:
            axes.axvline(answer.at_least, color=COLOURS[6], linestyle=":", label="fewer are not enough, proven")
        if answer.found is not None and answer.found != answer.at_least:
            axes.axvline(answer.found, color=COLOURS[2], linestyle="--", label="found to be enough")
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel(f"nodes of {answer.node_type} added")
        axes.set_ylabel("GPUs that wait")
        axes.set_ylim(bottom=0)
        _legend(axes)
        return tips

    return Figure(
        name,
        f"Add {answer.node_type}: {_how_many(answer)}{', proven' if answer.proven else ''}",
        "GPU demand that the best plan found leaves waiting, for each number tried.",
        (WIDE, 3.4),
        draw,
        ("nodes", "jobs_waiting", "gpus_waiting", "verdict"),
        rows,
    )


def cheapest_figure(answer: Cheapest, name: str) -> Figure:
    """Return the figure of the cost of each node type alone, and of the mixture."""
    alone = [
        (choice.node_type, choice.found, choice.price_milli_per_hour * choice.found / 1000)
        for choice in answer.choices
        if choice.found is not None
    ]
    rows: list[tuple[str, int, float]] = list(alone)
    if answer.mixture is not None and answer.price_milli_per_hour is not None:
        words = " + ".join(f"{n} {c.node_type}" for n, c in zip(answer.mixture, answer.choices, strict=True) if n)
        rows.append((words or "none", sum(answer.mixture), answer.price_milli_per_hour / 1000))
    least = answer.at_least_milli_per_hour

    def draw(axes: Axes) -> Tips:
        colours = [COLOURS[5] if i < len(alone) else COLOURS[0] for i in range(len(rows))]
        bars = axes.barh([row[0] for row in rows], [row[2] for row in rows], color=colours, height=0.6)
        axes.bar_label(bars, [plural(row[1], "node") for row in rows], padding=3)
        axes.invert_yaxis()
        axes.margins(x=0.2)
        if least is not None:
            axes.axvline(least / 1000, color=COLOURS[6], linestyle=":", label="no mixture for less, proven")
            _legend(axes)
        axes.set_xlabel("price an hour")
        return {}

    return Figure(
        name,
        "Add nodes of several types: the cheapest alone, and mixed",
        "What each type costs with which all jobs are placed, and the cheapest mixture found.",
        (WIDE, 0.3 + _bars_high(len(rows))),
        draw,
        ("nodes_of", "nodes", "price_per_hour"),
        rows,
    )


def swap_figure(answer: Swap, name: str) -> Figure:
    """Return the figure of the round's value before and after, up to its bound."""
    sides = (("before", answer.before), ("after", answer.after))
    rows = [
        (
            word,
            outcome.value,
            outcome.value_bound,
            outcome.jobs_placed,
            outcome.jobs_waiting,
            outcome.gpu_milli_placed / 1000,
        )
        for word, outcome in sides
    ]

    def draw(axes: Axes) -> Tips:
        for i, row in enumerate(rows):
            low, high = row[1], row[2]
            axes.barh(i, low, height=0.5, color=COLOURS[0], label="_" if i else "value of the plan found")
            if high is not None and high > low:
                axes.barh(
                    i, high - low, left=low, height=0.5, color=COLOURS[5], alpha=0.5, label="_" if i else "to the bound"
                )
            words, end = f"{plural(row[3], 'job')} placed, {row[4]:,} waiting", (high or low, i)
            axes.annotate(words, end, (5, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(rows)), [row[0] for row in rows])
        axes.invert_yaxis()
        axes.margins(x=0.35)
        axes.set_xlim(left=min(0, *(row[1] for row in rows)))
        axes.set_xlabel("net value")
        _legend(axes)
        return {}

    high = "unknown" if answer.gain_high is None else f"{answer.gain_high:+,}"
    gain = "unknown" if answer.gain_low is None else f"{answer.gain_low:+,} to {high}"
    return Figure(
        name,
        f"Exchange of {plural(answer.exchanged, 'node')}: {answer.answer}, gain {gain}",
        "The round before and after; the gain of the best plans lies in the interval, proven.",
        (WIDE, 2.4),
        draw,
        ("round", "value", "bound", "jobs_placed", "jobs_waiting", "gpus_placed"),
        rows,
    )


def prices_figure(answer: Prices, name: str) -> Figure:
    """Return the figure of marginal values: an interval by solving again, a mark by duals."""
    rows = [(price.of, price.name, price.low, price.high, price.by_duals) for price in answer.prices]

    def draw(axes: Axes) -> Tips:
        tips = {}
        for i, (_, what, low, high, duals) in enumerate(rows):
            gid = f"{name}-{i}"
            if low is not None and high is not None:
                axes.plot([low, high], [i, i], "|-", color=COLOURS[0], linewidth=5, markersize=9, alpha=0.7, gid=gid)
                tips[gid] = f"{what}: {low:+,} to {high:+,}"
            if duals is not None:
                axes.plot([duals], [i], "D", color=COLOURS[1], markersize=5)
        axes.plot([], [], "|-", color=COLOURS[0], linewidth=5, alpha=0.7, label="by solving again")
        axes.plot([], [], "D", color=COLOURS[1], markersize=5, label="by duals")
        axes.set_yticks(range(len(rows)), [f"{row[1]} ({row[0]})" for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.axvline(0, color="#BBBBBB", linewidth=0.8)
        axes.set_xlabel("worth to the round: gain of net value")
        _legend(axes)
        return tips

    return Figure(
        name,
        "Prices: what one more is worth",
        f"Beside a value of {answer.value:,}. The gain of the best plan lies in the interval; duals price fractions of "
        "jobs, so they may lie outside.",
        (WIDE, 0.3 + _bars_high(len(rows))),
        draw,
        ("of", "name", "low", "high", "by_duals"),
        rows,
        keys=2,
    )


def review_figure(answer: Review, name: str) -> Figure:
    """Return the figure of the costs of the reviewed placement and of the best plan found, term by term."""
    rows = [
        (term.name, term.unit, term.weight, term.raw, term.best_raw, term.weight * (term.raw - term.best_raw))
        for term in answer.terms
    ]

    def draw(axes: Axes) -> Tips:
        most = [max(1, row[3], row[4]) for row in rows]
        for shift, column, word in ((-0.2, 3, "this placement"), (0.2, 4, "best plan found")):
            share = [100 * int(str(row[column])) / high for row, high in zip(rows, most, strict=True)]
            bars = axes.barh(
                [i + shift for i in range(len(rows))], share, height=0.36, color=COLOURS[shift > 0], label=word
            )
            axes.bar_label(bars, [f"{row[column]:,} {row[1]}" for row in rows], padding=3)
        axes.set_yticks(range(len(rows)), [row[0] for row in rows])
        axes.invert_yaxis()
        axes.margins(x=0.3)
        axes.set_xlabel("% of the larger of the two")
        _legend(axes)
        return {}

    return Figure(
        name,
        "Audit: " + (_standing(answer) if answer.valid else f"{answer.count:,} rules broken"),
        "Costs of the placement and of the best plan found for the same jobs; they compare only where both are worth "
        "the same.",
        (WIDE, max(1.9, 0.6 * len(rows) + 1.3)),
        draw,
        ("term", "unit", "weight", "this", "best", "weighted_difference"),
        rows,
    )


def _standing(answer: Review) -> str:
    gap = "" if answer.value_gap is None else f", {100 * answer.value_gap:.2f} % from the bound {answer.value_bound:,}"
    return f"value {answer.value:,}{gap}"
