"""Answers as people and programs take them: one record, which terminals, pages and files render."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.view.cells import words as words
    from placeopt.view.comparison import compare as compare
    from placeopt.view.records import Better as Better
    from placeopt.view.records import Cell as Cell
    from placeopt.view.records import Chart as Chart
    from placeopt.view.records import Column as Column
    from placeopt.view.records import Figure as Figure
    from placeopt.view.records import Table as Table
    from placeopt.view.records import Unit as Unit
    from placeopt.view.records import View as View
    from placeopt.view.tables import as_csv as as_csv
    from placeopt.view.tables import csv_text as csv_text

__getattr__, __dir__ = lazy_names(__name__)
