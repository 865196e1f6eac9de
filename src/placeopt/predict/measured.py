"""Measured pairs of jobs that shared a GPU, and Gavel's table of throughputs as such pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from placeopt.documents.faults import path_text
from placeopt.documents.files import parse_json
from placeopt.errors import BadInput
from placeopt.predict.fitted import Provenance

LEAST_RATIO = 1e-3
"""Ratios up to this are left out: the job starved, so the rate is not a measurement of interference."""
_NAME = re.compile(r"\(.+, ([1-9][0-9]{0,4})\)", re.DOTALL)
ZEROS = "of zeros: not runnable together, or never measured"
SEVERAL = "of jobs of several GPUs"
NO_RATE = "of a job without a rate alone"
ODD = "with a name that is not a job"
_Rate = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class _Row(BaseModel, extra="allow"):
    """A job's rate alone, if measured, and further fields: another job -> the rates of both."""

    __pydantic_extra__: dict[str, tuple[_Rate, _Rate]]
    null: _Rate | None = None


_TABLE = TypeAdapter(dict[str, _Row])


class Pair(NamedTuple):
    """A job of ``profile`` beside one job of ``beside`` on one GPU; ``ratio``: its rate there over its rate alone."""

    profile: str
    beside: str
    ratio: float

    @property
    def stretch(self) -> float:
        """Time beside the other over time alone; a ratio above 1 counts as no slowdown."""
        return max(1.0, 1 / self.ratio)


@dataclass(frozen=True)
class Measured:
    """
    Pairs with ratios above 0, their source and licence, and the pairs that a reader left out: counts by reason.

    Raises ``BadInput`` with the first impossible ratio.
    """

    pairs: Sequence[Pair]
    source: str
    licence: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pair in self.pairs:
            if not 0 < pair.ratio < float("inf"):
                raise BadInput(
                    f"pair {pair.profile!r} beside {pair.beside!r}: a ratio of {pair.ratio}; expected above 0; leave "
                    "out pairs that were not measured, or could not run together"
                )

    @property
    def provenance(self) -> Provenance:
        """The record of the data."""
        counted = "; ".join(f"{count} {reason}" for reason, count in self.left_out.items() if count)
        return Provenance(
            source=self.source,
            licence=self.licence,
            rows=len(self.pairs),
            left_out=sum(self.left_out.values()),
            why_left_out=f"pairs: {counted}" if counted else "",
        )


def gavel_pairs(text: str, worker: str, *, source: str = "throughputs", licence: str = "") -> Measured:
    """
    Return the pairs of one worker type from Gavel's throughput file, of jobs of one GPU, both directions of each.

    A job is named ``('ResNet-18 (batch size 16)', 1)``, with its number of GPUs; a name without a number, as in Gavel's
    first files, is of a job of one GPU. Pairs left out are counted as `ZEROS`, `SEVERAL`, `NO_RATE` or `ODD`.

    Raises
    ------
    BadInput
        If the file has another form or no such worker type, or no pair can be read; counts the pairs left out.
    """
    where, document = f"{source}, worker type {worker!r}", parse_json(text, source)
    try:
        table = _TABLE.validate_python(document.get(worker) if isinstance(document, dict) else None)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise BadInput(
            f"{where}: {path_text(fault['loc'][:2])} {str(fault['input'])[:80]}: {fault['msg']}; expected "
            '{worker: {job: {"null": rate, other: [rate, rate of other]}}}, rates from 0 on'
        ) from error
    alone = {name: row.null for name, row in table.items() if _gpus(name) == 1 and row.null is not None}
    left: Counter[str] = Counter()
    pairs = []
    for name, other, rates in (
        (j, k, rates) for j, row in table.items() for k, rates in row.__pydantic_extra__.items()
    ):
        both = {_gpus(name), _gpus(other)}
        if both != {1}:
            left[ODD if 0 in both else SEVERAL] += 1
        elif name not in alone or other not in alone:
            left[NO_RATE] += 1
        else:
            solo = (alone[name], alone[other])
            ratios = [rate / own if own else 0.0 for rate, own in zip(rates, solo, strict=True)]
            if min(ratios) > LEAST_RATIO:
                pairs += [Pair(name, other, ratios[0]), Pair(other, name, ratios[1])]
            else:
                left[ZEROS] += 1
    if not pairs:
        counts = ", ".join(f"{count} {reason}" for reason, count in left.items()) or "there is none"
        raise BadInput(f"{where}: no pair of jobs of one GPU could be read; pairs: {counts}")
    return Measured(pairs, source, licence, left)


def _gpus(name: str) -> int:
    """Return the number of GPUs that a job's name states: 1 where it is a plain name, 0 where that is none."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else 0 if name.startswith("(") or not name.strip() else 1
