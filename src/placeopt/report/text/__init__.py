"""Text for terminals: summaries, GPU maps and pictures of machines. Nothing here reads, solves or prints."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.report.text.benchmark import (
        checked_json,
        checked_page,
        counts_json,
        counts_page,
        report_page,
        sets_json,
        sets_page,
        tables_json,
    )
    from placeopt.report.text.documents import (
        hardware_document,
        hardware_summary,
        plan_data,
        plan_page,
    )
    from placeopt.report.text.explanation import explanation_page, queue_page
    from placeopt.report.text.instance_summary import instance_facts, summary_line
    from placeopt.report.text.links import WIDTH, job_links, machine_picture
    from placeopt.report.text.palette import (
        ASCII,
        BAD,
        BLOCKS,
        GOOD,
        JOB_COLORS,
    )
    from placeopt.report.text.scenario import (
        scenario_facts,
        scenario_page,
        simulation_facts,
        simulation_table,
    )
    from placeopt.report.text.summary import plan_summary
    from placeopt.report.text.text_table import TextTable
    from placeopt.report.text.whatif import (
        added_page,
        cheapest_page,
        defrag_page,
        failures_page,
        fit_page,
        slots_page,
    )
    from placeopt.report.text.whatif_rounds import (
        curve_csv,
        curve_page,
        prices_page,
        review_page,
        swap_page,
        sweep_csv,
        sweep_page,
    )

__all__ = [
    "ASCII",
    "BAD",
    "BLOCKS",
    "GOOD",
    "JOB_COLORS",
    "WIDTH",
    "TextTable",
    "added_page",
    "cheapest_page",
    "checked_json",
    "checked_page",
    "counts_json",
    "counts_page",
    "curve_csv",
    "curve_page",
    "defrag_page",
    "explanation_page",
    "failures_page",
    "fit_page",
    "hardware_document",
    "hardware_summary",
    "instance_facts",
    "job_links",
    "machine_picture",
    "plan_data",
    "plan_page",
    "plan_summary",
    "prices_page",
    "queue_page",
    "report_page",
    "review_page",
    "scenario_facts",
    "scenario_page",
    "sets_json",
    "sets_page",
    "simulation_facts",
    "simulation_table",
    "slots_page",
    "summary_line",
    "swap_page",
    "sweep_csv",
    "sweep_page",
    "tables_json",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "benchmark": (
            "checked_json",
            "checked_page",
            "counts_json",
            "counts_page",
            "report_page",
            "sets_json",
            "sets_page",
            "tables_json",
        ),
        "documents": (
            "hardware_document",
            "hardware_summary",
            "plan_data",
            "plan_page",
        ),
        "explanation": (
            "explanation_page",
            "queue_page",
        ),
        "instance_summary": (
            "instance_facts",
            "summary_line",
        ),
        "links": (
            "WIDTH",
            "job_links",
            "machine_picture",
        ),
        "palette": (
            "ASCII",
            "BAD",
            "BLOCKS",
            "GOOD",
            "JOB_COLORS",
        ),
        "scenario": (
            "scenario_facts",
            "scenario_page",
            "simulation_facts",
            "simulation_table",
        ),
        "summary": ("plan_summary",),
        "text_table": ("TextTable",),
        "whatif": (
            "added_page",
            "cheapest_page",
            "defrag_page",
            "failures_page",
            "fit_page",
            "slots_page",
        ),
        "whatif_rounds": (
            "curve_csv",
            "curve_page",
            "prices_page",
            "review_page",
            "swap_page",
            "sweep_csv",
            "sweep_page",
        ),
    },
)
