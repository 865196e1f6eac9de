"""``placeopt mcp``: the judge as a tool of the Model Context Protocol, over standard input and output."""

from __future__ import annotations

import json
from typing import Any

from placeopt.cli.commands.judge import Asked, judged
from placeopt.cli.output import ExitCode
from placeopt.errors import BadInput

MOST_S = 3600
"""Longest call, in seconds."""


def mcp() -> int:
    """
    Offer the judge as a tool over standard input and output, by the Model Context Protocol.

    For assistants that run commands of this machine: their settings name the command 'placeopt' with the argument
    'mcp'. The tool 'judge' takes what 'placeopt judge' takes, one call at a time. It reads files with the rights of
    this process, and writes none.
    """
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise BadInput(f"mcp: {error.name} is not installed; pip install 'placeopt[mcp]'") from None
    server = MCPServer("placeopt")
    server.tool(name="judge")(judge_files)
    server.run(transport="stdio")
    return ExitCode.DONE


def judge_files(
    files: list[str],
    plan: str | None = None,
    slurm_jobs: str | None = None,
    live: bool = False,
    time_limit_s: float = 60.0,
) -> dict[str, Any]:
    """
    Judge what a GPU scheduler did, against plans that are proven best.

    files: a round of placeopt; or lists of Kubernetes' objects (kubectl get nodes,pods -A -o json); or a snapshot of
    KAI (ZIP); or, with slurm_jobs (squeue --json), the nodes of Slurm (scontrol show nodes --json). plan: a plan of the
    round; without it, what runs is judged. live: allow as many changes of a round as its running jobs do.

    Returns a sentence, what is proven, and the judgement: regret by priority and GPUs, jobs that wait although they
    fit, the smallest sets of moves and stops that let others start, jobs that start after none, stranded GPUs by cause,
    and what one more node, one drained node back or one quota lifted would bring.
    """
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        if not 0 < time_limit_s <= MOST_S:
            raise BadInput(f"time_limit_s: {time_limit_s}, expected seconds from above 0 to {MOST_S}")
        found = judged(Asked(files, plan, slurm_jobs, live), time_limit_s)
    except BadInput as error:  # any other error is shown to no client
        raise ToolError(str(error)) from None
    view = found.view()
    return {"answer": view.title, "proof": view.proof, "judgement": json.loads(found.model_dump_json(by_alias=True))}
