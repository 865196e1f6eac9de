"""Text for terminals: summaries, GPU maps and pictures of machines. Nothing here reads, solves or prints."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.report.text.explanation import explanation_page as explanation_page
    from placeopt.report.text.explanation import queue_page as queue_page
    from placeopt.report.text.links import WIDTH as WIDTH
    from placeopt.report.text.links import job_links as job_links
    from placeopt.report.text.links import machine_picture as machine_picture
    from placeopt.report.text.palette import ASCII as ASCII
    from placeopt.report.text.palette import BAD as BAD
    from placeopt.report.text.palette import BLOCKS as BLOCKS
    from placeopt.report.text.palette import GOOD as GOOD
    from placeopt.report.text.palette import JOB_COLORS as JOB_COLORS
    from placeopt.report.text.text_table import TextTable as TextTable
    from placeopt.report.text.whatif import added_page as added_page
    from placeopt.report.text.whatif import cheapest_page as cheapest_page
    from placeopt.report.text.whatif import defrag_page as defrag_page
    from placeopt.report.text.whatif import failures_page as failures_page
    from placeopt.report.text.whatif import fit_page as fit_page
    from placeopt.report.text.whatif import slots_page as slots_page
    from placeopt.report.text.whatif_rounds import curve_csv as curve_csv
    from placeopt.report.text.whatif_rounds import curve_page as curve_page
    from placeopt.report.text.whatif_rounds import prices_page as prices_page
    from placeopt.report.text.whatif_rounds import review_page as review_page
    from placeopt.report.text.whatif_rounds import swap_page as swap_page
    from placeopt.report.text.whatif_rounds import sweep_csv as sweep_csv
    from placeopt.report.text.whatif_rounds import sweep_page as sweep_page

__getattr__, __dir__ = lazy_names(__name__)
