"""A judgement as a view: what terminals, pages and files show of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placeopt.judge.records import Band, Judgement, Regret, WaitingJobs
from placeopt.readable import plural
from placeopt.view import Column, Figure, Table, View
from placeopt.view.records import Verdict

RULES = {"fixed": "with all that runs fixed", "changes": "with the changes that are allowed"}
SHORT = {"fixed": "fixed", "changes": "with changes"}
VERDICTS = {
    "fits": "fits as it is",
    "changes": "fits after changes",
    "never": "fits after no changes",
    "unknown": "not known in time",
}
NAMES_SHOWN = 3


def judgement_view(found: Judgement) -> View:
    """Return the view of a judgement."""
    if found.violations:
        broken = tuple((text.partition(": ")[0], text.partition(": ")[2]) for text in found.violations)
        columns = (Column(name="rule"), Column(name="what is wrong"))
        table = Table(name="Rules broken", columns=columns, keys=2, rows=broken)
        return View(title="the plan breaks rules; nothing else is said of it", verdict="bad", tables=(table,))
    tables = (_regrets(found.regrets), _waiting(found.waiting), _stranded(found), _gains(found))
    return View(
        title=_title(found),
        verdict=_verdict(found),
        proof=_proof(found),
        figures=tuple(_figures(found)),
        notes=tuple(f"{part}: {why}" for part, why in found.open.items()),
        tables=tuple(table for table in tables if table.rows),
    )


def _title(found: Judgement) -> str:
    waiting = {verdict: sum(len(kind.jobs) for kind in _of(found, verdict)) for verdict in VERDICTS}
    beaten = [regret for regret in found.regrets if regret.is_beaten]
    if not beaten:
        return f"no better plan was found; waiting: {plural(sum(waiting.values()), 'job')}"
    parts = [f"better by {_by(regret)} {RULES[regret.rules]}" for regret in beaten]
    fits = f"; {plural(waiting['fits'], 'job')} could start as it is" if waiting["fits"] else ""
    return f"a plan is there that is {', and '.join(parts)}{fits}"


def _by(regret: Regret) -> str:
    """Return by what the best plan is better: the first band that differs, or else GPUs."""
    for band in regret.bands:
        if band.given is not None and band.best != band.given:
            return f"{plural(band.best - band.given, 'job')} of priority {_priority(band)}"
    return f"{(regret.best_gpu_milli - (regret.gpu_milli or 0)) / 1000:g} GPUs"


def _verdict(found: Judgement) -> Verdict:
    if any(regret.is_beaten for regret in found.regrets):
        return "bad"
    return "good" if all(regret.proven for regret in found.regrets) else "open"


def _proof(found: Judgement) -> str:
    of = "the cluster" if found.of == "cluster" else f"what was read; {plural(len(found.unread), 'name')} could not be"
    if found.proven:
        return f"every statement is proven, of {of}"
    proven = [RULES[regret.rules] for regret in found.regrets if regret.proven]
    best = f"the best plan {' and '.join(proven)} is proven" if proven else "no best plan is proven"
    return f"{best}; of {of}"


def _figures(found: Judgement) -> Iterable[Figure]:
    for regret in found.regrets:
        if (jobs := regret.jobs) is not None and regret.gpu_milli is not None:
            name = SHORT[regret.rules]
            more = regret.best_gpu_milli - regret.gpu_milli
            yield Figure(name=f"jobs that the best plan starts more, {name}", value=jobs, better="less")
            yield Figure(name=f"GPUs that it uses more, {name}", value=more, unit="gpu_milli", better="less")
    for verdict, said in VERDICTS.items():
        count = sum(len(kind.jobs) for kind in _of(found, verdict))
        yield Figure(name=f"waiting jobs: {said}", value=count, better="less")
    yield Figure(name="idle GPUs", value=found.idle_gpus)
    yield Figure(name="stranded GPUs", value=sum(one.gpus for one in found.stranded), better="less")


def _of(found: Judgement, verdict: str) -> list[WaitingJobs]:
    return [kind for kind in found.waiting if kind.verdict == verdict]


def _priority(band: Band) -> str:
    return str(band.highest) if band.highest == band.lowest else f"{band.highest} to {band.lowest}"


def _regrets(regrets: Sequence[Regret]) -> Table:
    names = ("rules", "priority", "jobs", "this plan", "best plan", "no plan more than")
    rows: list[tuple[str | int | None, ...]] = []
    for regret in regrets:
        name = SHORT[regret.rules]
        rows += [(name, _priority(band), band.jobs, band.given, band.best, band.bound) for band in regret.bands]
        gpus = (regret.gpu_milli, regret.best_gpu_milli, regret.bound_gpu_milli)
        rows.append((name, "GPUs / 1000", None, *gpus))
    columns = tuple(Column(name=name) for name in names)
    note = "jobs placed, the highest priority first, then thousandths of GPUs"
    return Table(name="Regret", columns=columns, keys=2, rows=tuple(rows), note=note)


def _waiting(waiting: Sequence[WaitingJobs]) -> Table:
    names = ("jobs", "number", "verdict", "least changes", "proven", "where, or why not")
    rows = [
        (
            _some(kind.jobs),
            len(kind.jobs),
            VERDICTS[kind.verdict],
            kind.size,
            "yes" if kind.proven else f"at least {kind.least or 0}",
            _where(kind),
        )
        for kind in waiting
    ]
    return Table(name="Waiting jobs", columns=tuple(Column(name=name) for name in names), rows=tuple(rows))


def _where(kind: WaitingJobs) -> str:
    if kind.place is None:
        return kind.detail
    nodes = _some(list(dict.fromkeys(part.node for part in kind.place.assignments)))
    done = (("move", kind.moved), ("shrink", kind.shrunk), ("stop", kind.stopped))
    changes = [f"{verb} {_some([one.job for one in some])}" for verb, some in done if some]
    return f"on {nodes}{' after: ' if changes else ''}{', '.join(changes)}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _stranded(found: Judgement) -> Table:
    names = ("cause", "GPUs", "nodes", "waiting jobs")
    rows = tuple((one.cause, one.gpus, one.nodes, one.jobs) for one in found.stranded)
    note = "idle, and usable by no waiting job"
    return Table(name="Stranded GPUs", columns=tuple(Column(name=name) for name in names), rows=rows, note=note)


def _gains(found: Judgement) -> Table:
    columns = (
        Column(name="change"),
        Column(name="jobs", unit="change", better="more"),
        Column(name="GPUs", unit="gpu_milli", better="more"),
        Column(name="proven"),
    )
    rows = tuple((one.change, one.jobs, one.gpu_milli, "yes" if one.proven else "no") for one in found.gains)
    return Table(name="What one change would bring", columns=columns, rows=rows)
