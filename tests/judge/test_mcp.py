"""The judge as a tool: a client of the Model Context Protocol starts the command and asks it."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

ROOT = Path(__file__).parents[2]


async def asked(*calls: dict[str, Any]) -> list[Any]:
    """Return the names of the tools, and the result of each call."""
    command = StdioServerParameters(command=sys.executable, args=["-m", "placeopt.cli", "mcp"], env={**os.environ})
    async with stdio_client(command) as (reader, writer), ClientSession(reader, writer) as client:
        await client.initialize()
        listed = await client.list_tools()
        return [[tool.name for tool in listed.tools], *[await client.call_tool("judge", call) for call in calls]]


def test_a_client_asks_and_is_answered() -> None:
    """One tool, which judges files; what is wrong is said, and the next call is answered."""
    file = str(ROOT / "examples" / "kubernetes.json")
    tools, wrong, right = asyncio.run(asked({"files": ["/none.json"]}, {"files": [file]}))
    assert tools == ["judge"]
    assert wrong.is_error
    assert "/none.json: cannot be read" in wrong.content[0].text
    answer = json.loads(right.content[0].text)
    assert answer["answer"].startswith("a plan is there that is better by 2 jobs of priority 0")
    assert [one["verdict"] for one in answer["judgement"]["waiting"]].count("fits") == 2
