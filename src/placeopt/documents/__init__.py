"""
placeopt's own files: rounds, plans and other records as JSON, read strictly and written stably.

``read_document`` and ``loads`` take every record, ``dumps`` and ``write_document`` write it.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.documents.columns import cluster_from_columns as cluster_from_columns
    from placeopt.documents.columns import instance_from_columns as instance_from_columns
    from placeopt.documents.documents import dumps as dumps
    from placeopt.documents.documents import loads as loads
    from placeopt.documents.documents import read_document as read_document
    from placeopt.documents.documents import read_instance as read_instance
    from placeopt.documents.documents import read_plan as read_plan
    from placeopt.documents.documents import write_document as write_document
    from placeopt.documents.faults import make_record as make_record
    from placeopt.documents.files import MAX_BYTES as MAX_BYTES
    from placeopt.documents.files import check_bounds as check_bounds
    from placeopt.documents.files import check_lines as check_lines
    from placeopt.documents.files import make_folder as make_folder
    from placeopt.documents.files import read_bytes as read_bytes
    from placeopt.documents.files import write_bytes as write_bytes
    from placeopt.documents.kinds import as_any as as_any
    from placeopt.documents.kinds import kind_of as kind_of
    from placeopt.documents.kinds import read_any as read_any

__getattr__, __dir__ = lazy_names(__name__)
