"""All settings, figures and orderings, by paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placeopt.errors import BadArgument
from placeopt.simulation import policy_names
from placeopt_papers import dynamoml, fgd, genie, horus, sc17, soda, traces
from placeopt_papers.records import Ordering, PaperSetting, ReportedFigure


@dataclass(frozen=True)
class Paper:
    """A paper, or the traces, with settings, figures and orders."""

    title: str
    settings: tuple[PaperSetting, ...]
    figures: tuple[ReportedFigure, ...] = ()
    orderings: tuple[Ordering, ...] = ()


PAPERS: dict[str, Paper] = {
    sc17.KEY: Paper("SC'17, topology-aware scheduling", sc17.SETTINGS, sc17.FIGURES, sc17.ORDERINGS),
    genie.KEY: Paper("GENIE", genie.SETTINGS, genie.FIGURES, genie.ORDERINGS),
    horus.KEY: Paper("Horus", horus.SETTINGS, horus.FIGURES, horus.ORDERINGS),
    dynamoml.KEY: Paper("DynamoML", dynamoml.SETTINGS, dynamoml.FIGURES, dynamoml.ORDERINGS),
    soda.KEY: Paper("SODA", soda.SETTINGS, soda.FIGURES, soda.ORDERINGS),
    fgd.KEY: Paper("FGD (ATC'23)", fgd.SETTINGS, fgd.FIGURES, fgd.ORDERINGS),
    traces.KEY: Paper("Real traces", traces.SETTINGS),
}
SETTINGS: dict[str, PaperSetting] = {setting.name: setting for paper in PAPERS.values() for setting in paper.settings}


def available_policies(setting: PaperSetting) -> list[str]:
    """Return the policies of a setting that exist."""
    if setting.one_at_a_time:
        return list(setting.policies)
    there = set(policy_names())
    return [policy for policy in setting.policies if policy in there]


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
            settings |= {setting.name: setting for setting in PAPERS[name].settings}
        elif name in SETTINGS:
            papers |= {key: None for key, paper in PAPERS.items() if SETTINGS[name] in paper.settings}
            settings[name] = SETTINGS[name]
        else:
            raise BadArgument(
                f"{name!r} is neither a paper ({', '.join(PAPERS)}) nor a setting ({', '.join(SETTINGS)})"
            )
    return list(papers), list(settings.values())
