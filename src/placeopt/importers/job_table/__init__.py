"""Tables of jobs: rows of any CSV, JSON or Parquet file whose columns the caller names."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.importers.job_table.column_choice import parse_columns as parse_columns
    from placeopt.importers.job_table.read import TableJob as TableJob
    from placeopt.importers.job_table.read import read_jobs as read_jobs

__getattr__, __dir__ = lazy_names(__name__)
