"""What an importer left out, kept in doubt, drained or assumed: for the instance's note and standard error."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate, islice

MAX_NAMES = 3
"""Jobs or nodes that one line of the note names; the line counts all of them."""
NOTE_LENGTH = 9000
"""Characters of the note; an instance allows 10,000, and the first line states the source of the data."""

LEFT_OUT = "Left out"
KEPT = "Kept as running"
DRAINED = "Drained"


@dataclass
class ImportNotes:
    """
    Collects notes while an importer reads.

    ``names``: (heading, reason) -> names of the jobs or nodes concerned. ``assumptions``: Sentences. Each stands once.
    """

    names: dict[tuple[str, str], dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    assumptions: dict[str, None] = field(default_factory=dict)

    def leave_out(self, reason: str, job: str) -> None:
        """Record a waiting job that does not become part of the round."""
        self.names[LEFT_OUT, reason][job] = None

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
        return {node for (heading, _), nodes in self.names.items() if heading == DRAINED for node in nodes}

    def text(self) -> str:
        """
        Return the notes, one a line: assumptions, then counts by reason with the first `MAX_NAMES` names.

        Characters that cannot be printed become ``?``. The last line counts what exceeds `NOTE_LENGTH`.
        """
        lines = [(sentence, 0) for sentence in self.assumptions]
        for (heading, reason), names in self.names.items():
            some = ", ".join(name[:60] for name in islice(names, MAX_NAMES)) + (
                ", ..." if len(names) > MAX_NAMES else ""
            )
            lines.append((f"{heading}, {reason[:200]}: {len(names)} ({some}).", len(names)))
        length = list(accumulate(len(line) + 1 for line, _ in lines))
        num_fitting = bisect_right(length, NOTE_LENGTH)
        texts = [line for line, _ in lines[:num_fitting]]
        if rest := lines[num_fitting:]:
            texts.append(f"Reasons that do not fit here: {len(rest)}, jobs and nodes: {sum(n for _, n in rest)}.")
        return "\n".join("".join(sign if sign.isprintable() else "?" for sign in line) for line in texts)
