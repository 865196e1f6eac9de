"""What an answer looks like, once: title, verdict, of what it is proven, figures, notes, tables, at most one chart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import FormatVersion, Record
from placeopt.model.instance import FORMAT_VERSION

Cell = str | int | float | None
"""Of a table: None is unknown, or not there."""
Unit = Literal["", "gpu_milli", "cpu_millicores", "mib", "s", "ms", "fraction", "change"]
"""
Of numbers, which stay as they are in JSON and CSV: thousandths of GPUs and of cores, MiB, seconds, milliseconds, parts
of 1 (read as percent), and differences (read with their sign).
"""
Better = Literal["", "less", "more"]
"""Which of two numbers is the better one, where that can be said."""
Verdict = Literal["", "good", "bad", "open"]
"""How an answer is read: as hoped, not so, or not decided."""


class Figure(Record):
    """A number or a word that answers, for programs too."""

    name: str
    """By it two answers of a kind are compared."""
    value: Cell
    unit: Unit = ""
    """Of a number."""
    better: Better = ""
    """Of two answers."""


class Column(Record):
    """A column of a table."""

    name: str
    """Its header; each once in a table."""
    unit: Unit = ""
    """Of its numbers."""
    better: Better = ""
    """Of two numbers in it."""


class Table(Record):
    """Rows under named columns."""

    name: str
    """Its heading; each once in a view."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)]
    """The first ones name the rows, the others say something of them."""
    rows: tuple[tuple[Cell, ...], ...] = ()
    """A cell for each column."""
    keys: Annotated[int, Field(ge=1)] = 1
    """Number of columns that name a row: by them the rows of two tables are compared."""
    note: str = ""
    """How it is read."""
    shown: Annotated[int, Field(ge=0)] = 20
    """Rows that a terminal shows before it counts the others; 0: the chart says it better. Files have all of them."""

    @model_validator(mode="after")
    def _is_even(self) -> Self:
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise ValueError(f"columns: a name stands twice in {names}")
        for row, cells in enumerate(self.rows):
            if len(cells) != len(names):
                raise ValueError(f"rows[{row}]: {len(cells)} cells, expected {len(names)}, one for each column")
        return self


Kind = Literal["map", "gantt", "bars", "lines", "steps", "intervals", "scatter"]


class Chart(Record):
    """
    How a table is drawn; every field names one of its columns.

    ``map``: a cell for each row, at ``x`` in the lane of its node, in the colour of its ``label``. ``gantt``: a bar for
    each row from ``x`` to ``until`` in its lane. ``bars``, ``lines``, ``steps``, ``scatter``: each of ``y`` over ``x``,
    apart by ``label``. ``intervals``: from the first of ``y`` to the second over ``x``.
    """

    kind: Kind
    table: str
    """Name of the table."""
    x: str
    """Of what stands to the right: a number, or names in the order of the rows."""
    y: tuple[str, ...] = ()
    """Of what stands up, all in one unit; of a map, at most one: how much of a cell is filled, in thousandths."""
    until: str = ""
    """Of ends of bars."""
    lane: str = ""
    """Of the line in which a row is drawn."""
    group: str = ""
    """Of what lanes are drawn together: a rack, a kind of machine."""
    label: str = ""
    """Of what tells rows apart by colour: a job, a policy."""

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are drawn."""
        return tuple(filter(None, (self.x, *self.y, self.until, self.lane, self.group, self.label)))


class View(Record):
    """An answer, as a terminal prints it, a page draws it, and files hold it."""

    document: Literal["view"] = "view"
    """What the file is."""
    format_version: FormatVersion = FORMAT_VERSION
    """Version of the file format."""
    title: str
    """The answer in a line."""
    verdict: Verdict = ""
    """How it is read."""
    proof: str = ""
    """What is proven, and of what: the cluster, or what was read of it."""
    figures: tuple[Figure, ...] = ()
    """The numbers of the answer."""
    notes: tuple[str, ...] = ()
    """Sentences that belong to it: what was assumed, what was left out."""
    tables: tuple[Table, ...] = ()
    """What it is made of."""
    chart: Chart | None = None
    """How one of the tables is drawn."""
    provenance: Mapping[str, Any] = Field(default_factory=dict)
    """Where it comes from: what was asked about, command, settings, seed, versions, time."""

    @model_validator(mode="after")
    def _is_drawable(self) -> Self:
        names = [table.name for table in self.tables]
        if len(set(names)) < len(names):
            raise ValueError(f"tables: a name stands twice in {names}")
        if self.chart is not None:
            drawn = [table for table in self.tables if table.name == self.chart.table]
            columns = [column.name for table in drawn for column in table.columns]
            if missing := [name for name in self.chart.names if name not in columns]:
                raise ValueError(f"chart: table {self.chart.table!r} has no column {missing[0]!r}, it has {columns}")
        return self

    def table(self, name: str) -> Table:
        """
        Return a table by its name.

        Raises
        ------
        KeyError
            If there is none.
        """
        return {table.name: table for table in self.tables}[name]

    def figure(self, name: str) -> Cell:
        """
        Return the value of a figure by its name.

        Raises
        ------
        KeyError
            If there is none.
        """
        return {figure.name: figure.value for figure in self.figures}[name]
