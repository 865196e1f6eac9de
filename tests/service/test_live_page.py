"""The page ``/``: what it shows of a live service, for everyone; jobs placed but not committed."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.accessibility import CHROMIUM, MISSING, checked
from placeopt import generate
from placeopt.documents import dumps, loads
from placeopt.view import View

pytest.importorskip("fastapi")
import httpx

from placeopt.service import Service
from placeopt.service.http import HttpServer, parse_address, read_tokens
from service.calls import solved

ROUND = generate("uniform", jobs=40, nodes=6, gpus=4, seed=0)
SERIOUS = {"serious", "critical"}
NOT_COMMITTED = "placed by the last round, which is not committed"


@pytest.fixture
def service() -> Iterator[Service]:
    """A cluster with a round that is solved and not committed."""
    with Service() as made:
        made.call("put_cluster", dumps(ROUND))
        solved(made, time_limit_s=2)
        yield made


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    with (
        HttpServer(service, parse_address("127.0.0.1:0", has_tokens=False)) as server,
        httpx.Client(base_url=f"http://{server.address}", timeout=60) as made,
    ):
        yield made


@pytest.fixture
def page(client: httpx.Client) -> str:
    return client.get("/").text


@pytest.fixture
def shown(client: httpx.Client, tmp_path: Path) -> str:
    """The page as a browser has filled it."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    return dom(str(client.base_url), tmp_path)


def dom(url: str, profile: Path) -> str:
    """Return what a browser makes of a page."""
    command = [
        *(str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"),
        *("--virtual-time-budget=4000", "--dump-dom", url),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def waiting(client: httpx.Client) -> dict[str, tuple[str, str]]:
    """Return reason and words of each waiting job, as the page's view has them."""
    (view,) = (loads(View, json.dumps(one)) for one in client.get("/v1/overview").json())
    return {row[0]: row[3:] for row in view.table("Waiting jobs").rows}


def test_the_page_loads_nothing(client: httpx.Client, page: str) -> None:
    """Its policy names the hash of its own script and style, nothing is from elsewhere, and no page frames it."""
    assert not re.search(r'(src|href)="', page)
    assert "innerHTML" not in page
    (policy,) = re.findall(r'Security-Policy" content="([^"]+)"', page)
    assert policy.count("sha256-") == 2
    assert "unsafe" not in policy
    assert client.get("/").headers["content-security-policy"] == "frame-ancestors 'none'"


def test_the_page_in_a_browser(client: httpx.Client, shown: str) -> None:
    """It shows the map, the queue with reasons and the rounds."""
    assert f"<h2>{ROUND.name}</h2>" in shown
    assert shown.count("<rect") >= 24
    assert client.get("/v1/rounds").json()["rounds"][0]["id"] in shown
    assert "node-00000" in shown
    assert NOT_COMMITTED in shown


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_page_without_a_token_asks_for_it(service: Service, tmp_path: Path) -> None:
    """And shows nothing of the cluster."""
    file = tmp_path / "tokens"
    file.write_text(f"read one {hashlib.sha256(b'secret').hexdigest()}\n")
    file.chmod(0o600)
    where = parse_address("127.0.0.1:0", has_tokens=True)
    with HttpServer(service, where, tokens=read_tokens(str(file))) as server:
        text = dom(f"http://{server.address}", tmp_path / "profile")
    assert re.search(r"<form>.*Token of role read", text)
    assert ROUND.name not in text


def test_what_becomes_of_jobs_that_wait(client: httpx.Client) -> None:
    """By the last round: placed, which only a commit carries out, or why not."""
    queue = waiting(client)
    others = [said for said in queue.values() if said[1] != NOT_COMMITTED]
    assert len(queue) == 40
    assert 0 < len(others) < 40
    assert all(reason and words for reason, words in others)


def test_jobs_of_a_committed_round_that_wait_again(service: Service, client: httpx.Client) -> None:
    """Those whose start failed wait after a commit, whoever made it; the others run, and leave the queue."""
    name = client.get("/v1/rounds").json()["rounds"][0]["id"]
    done = client.post("/v1/commit", json={"round": name}).json()
    assert client.get(f"/v1/rounds/{name}").json()["commit"] == done
    failed = {"action": done["actions"][0]["id"], "result": "failed"}
    assert client.post("/v1/outcome", json={"outcomes": [failed]}).status_code == 200
    queue = waiting(client)
    _, words = queue.pop(done["actions"][0]["action"]["job"])
    assert words == "placed by the last round and committed; its start failed, or it was stopped since"
    assert not queue.keys() & set(done["committed"])


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, False), (1280, True), (400, True)])
def test_axe_finds_nothing_serious(shown: str, width: int, dark: bool) -> None:
    """On the page as a browser has filled it; nor does it scroll sideways, nor is text of the map below 9 px."""
    found = checked(re.sub(r"<script>.*?</script>", "", shown, flags=re.DOTALL), width=width, dark=dark)
    assert [entry for entry in found["violations"] if entry["impact"] in SERIOUS] == []
    assert (found["dark"], found["scrolls"]) == (dark, False)
    assert found["text_px"] >= 9
    assert found["rules"] > 20
