"""Text for terminals: summaries, GPU maps and pictures of machines. Nothing here reads, solves or prints."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.report.text.links import WIDTH as WIDTH
    from placeopt.report.text.links import job_links as job_links
    from placeopt.report.text.links import machine_picture as machine_picture
    from placeopt.report.text.palette import ASCII as ASCII
    from placeopt.report.text.palette import BAD as BAD
    from placeopt.report.text.palette import BLOCKS as BLOCKS
    from placeopt.report.text.palette import GOOD as GOOD
    from placeopt.report.text.palette import JOB_COLORS as JOB_COLORS
    from placeopt.report.text.text_table import TextTable as TextTable

__getattr__, __dir__ = lazy_names(__name__)
