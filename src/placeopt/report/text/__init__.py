"""Text for terminals: summaries, GPU maps and pictures of machines. Nothing here reads, solves or prints."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.report.text.benchmark import checked_json as checked_json
    from placeopt.report.text.benchmark import checked_page as checked_page
    from placeopt.report.text.benchmark import counts_json as counts_json
    from placeopt.report.text.benchmark import counts_page as counts_page
    from placeopt.report.text.benchmark import report_page as report_page
    from placeopt.report.text.benchmark import sets_json as sets_json
    from placeopt.report.text.benchmark import sets_page as sets_page
    from placeopt.report.text.benchmark import tables_json as tables_json
    from placeopt.report.text.documents import hardware_document as hardware_document
    from placeopt.report.text.documents import hardware_summary as hardware_summary
    from placeopt.report.text.documents import plan_data as plan_data
    from placeopt.report.text.documents import plan_page as plan_page
    from placeopt.report.text.instance_summary import instance_facts as instance_facts
    from placeopt.report.text.instance_summary import summary_line as summary_line
    from placeopt.report.text.links import WIDTH as WIDTH
    from placeopt.report.text.links import job_links as job_links
    from placeopt.report.text.links import machine_picture as machine_picture
    from placeopt.report.text.palette import ASCII as ASCII
    from placeopt.report.text.palette import BAD as BAD
    from placeopt.report.text.palette import BLOCKS as BLOCKS
    from placeopt.report.text.palette import GOOD as GOOD
    from placeopt.report.text.palette import JOB_COLORS as JOB_COLORS
    from placeopt.report.text.scenario import scenario_facts as scenario_facts
    from placeopt.report.text.scenario import scenario_page as scenario_page
    from placeopt.report.text.scenario import simulation_facts as simulation_facts
    from placeopt.report.text.scenario import simulation_table as simulation_table
    from placeopt.report.text.summary import plan_summary as plan_summary
    from placeopt.report.text.text_table import TextTable as TextTable

__getattr__, __dir__ = lazy_names(__name__)
