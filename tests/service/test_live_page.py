"""The page ``/`` for everyone: contrast, regions, labels; axe-core where it is found; jobs placed but not committed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.accessibility import CHROMIUM, MISSING, checked, contrast, schemes
from placeopt import generate
from placeopt.documents import dumps

pytest.importorskip("fastapi")
import httpx

from placeopt.service import Service
from placeopt.service.http import HttpServer, parse_address
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
    command = [
        *(str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"),
        *("--virtual-time-budget=4000", "--dump-dom", str(client.base_url)),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_the_page_loads_nothing(client: httpx.Client, page: str) -> None:
    """Its policy names the hash of its own script and style, and nothing is from elsewhere."""
    assert not re.search(r'(src|href)="(?!data:,)', page)
    assert "innerHTML" not in page
    policy = client.get("/").headers["content-security-policy"]
    assert policy.count("sha256-") == 2
    assert "unsafe" not in policy


def test_the_page_in_a_browser(client: httpx.Client, shown: str) -> None:
    """It shows the map, the queue with reasons and the rounds."""
    assert f'<h1 id="name">{ROUND.name}</h1>' in shown
    assert shown.count("<rect") >= 24
    assert client.get("/v1/rounds").json()["rounds"][0]["id"] in shown
    assert "GPU 0" in shown
    assert NOT_COMMITTED in shown


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast_of_text(page: str, scheme: int) -> None:
    """4.5 to 1 for text."""
    colours = schemes(page)[scheme]
    assert len(schemes(page)) == 2
    for name in ("ink", "soft", "bad"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
        assert contrast(colours[name], colours["hover"]) >= 4.5, name


def test_squares_that_have_another_colour_in_the_dark_are_drawn_so(service: Service, client: httpx.Client) -> None:
    """Those of idle GPUs and of drained nodes."""
    service.call("changes", b'{"steps": [{"do": "drain", "nodes": ["node-00000"]}]}')
    drawn = set(re.findall(r'fill="(#\w+)"', client.get("/v1/overview/map.svg").text))
    recoloured = set(re.findall(r'rect\[fill="([^"]+)"\]', client.get("/").text))
    assert len(recoloured) == 2
    assert recoloured <= drawn


def test_regions_and_tables_are_named(page: str) -> None:
    """Boxes that scroll are reached by the keyboard; columns have a scope."""
    assert page.count('class="scroll"') == len(
        re.findall(r'class="scroll"[^>]* role="region" tabindex="0" aria-label="', page)
    )
    assert len(re.findall(r'<table id="\w+" aria-label="', page)) == page.count("<table ")
    assert 'cell.scope = "col"' in page


def test_what_becomes_of_jobs_that_wait(client: httpx.Client) -> None:
    """By the last round: placed, which only a commit carries out, or why not."""
    queue = client.get("/v1/overview").json()["queue"]
    placed = [job for job in queue if job["detail"] == NOT_COMMITTED]
    assert len(queue) == 40
    assert 0 < len(placed) < 40
    assert all(job["reason"] and job["detail"] for job in queue if job not in placed)


def test_jobs_of_a_committed_round_that_wait_again(service: Service, client: httpx.Client) -> None:
    """Those whose start failed wait after a commit, whoever made it; the others run, and leave the queue."""
    name = client.get("/v1/rounds").json()["rounds"][0]["id"]
    done = client.post("/v1/commit", json={"round": name}).json()
    assert client.get(f"/v1/rounds/{name}").json()["commit"] == done
    failed = {"action": done["actions"][0]["id"], "result": "failed"}
    assert client.post("/v1/outcome", json={"outcomes": [failed]}).status_code == 200
    queue = {job["job"]: job["detail"] for job in client.get("/v1/overview").json()["queue"]}
    words = queue.pop(done["actions"][0]["action"]["job"])
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
