"""What an importer left out, kept in doubt, drained or assumed, collected while it reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from placeopt.model import ReadingNote

LEFT_OUT = "left out"
NOT_ELIGIBLE = "not eligible"
KEPT = "kept as running"
DRAINED = "drained"
LONGEST = 1000
"""Characters of a reason or a name; what is longer is cut."""
LINES = 100
"""Lines of `lines`; the last one counts the rest."""


@dataclass
class ImportNotes:
    """
    Collects notes while an importer reads.

    ``names``: (kind, reason) -> names of the jobs or nodes concerned. ``assumptions``: Sentences. Each stands once.
    """

    names: dict[tuple[str, str], dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    assumptions: dict[str, None] = field(default_factory=dict)

    def leave_out(self, reason: str, job: str) -> None:
        """Record a waiting job that the round cannot state."""
        self.names[LEFT_OUT, reason][job] = None

    def not_eligible(self, reason: str, job: str) -> None:
        """Record a waiting job that no free capacity starts, whatever it asks for."""
        self.names[NOT_ELIGIBLE, reason][job] = None

    def keep(self, reason: str, job: str) -> None:
        """Record a running job that is kept although some of it is unreadable or contradicts the nodes."""
        self.names[KEPT, reason][job] = None

    def drain(self, reason: str, node: str) -> None:
        """Record a node to drain; `observed_instance` sets the flag."""
        self.names[DRAINED, reason][node] = None

    def assume(self, sentence: str) -> None:
        """Record an assumption."""
        self.assumptions[sentence] = None

    @property
    def drained(self) -> set[str]:
        """Nodes that are drained for any reason."""
        return {node for (kind, _), nodes in self.names.items() if kind == DRAINED for node in nodes}

    def records(self) -> tuple[ReadingNote, ...]:
        """Return the notes: assumptions, then names by kind and reason. What cannot be printed becomes ``?``."""
        notes = [ReadingNote(kind="assumed", reason=_printable(sentence)) for sentence in self.assumptions]
        for (kind, reason), names in self.names.items():
            fields = {"kind": kind, "reason": _printable(reason), "names": tuple(map(_printable, names))}
            notes.append(ReadingNote.model_validate(fields))
        return tuple(notes)

    def text(self) -> str:
        """Return the notes as `lines` of text."""
        return "\n".join(lines(self.records()))


def lines(notes: Iterable[ReadingNote]) -> list[str]:
    """Return a line for each note, `LINES` at the most."""
    notes = tuple(notes)
    texts = [str(note) for note in notes[:LINES]]
    if rest := notes[LINES:]:
        texts.append(f"Reasons that do not fit here: {len(rest)}, jobs and nodes: {sum(len(n.names) for n in rest)}.")
    return texts


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text[:LONGEST]) or "?"
