"""The page ``/`` for everyone: contrast, regions, labels; axe-core where it is found; jobs placed but not committed."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.accessibility import CHROMIUM, MISSING, checked, contrast, schemes
from placeopt import generate
from placeopt.formats import dumps

pytest.importorskip("uvicorn")
from placeopt.report.html.cluster_layout import STATES
from placeopt.service import Service
from placeopt.service.http import HttpServer, parse_address
from placeopt.service.http.live_page import NOT_COMMITTED, PAGE, Overviews

SERIOUS = {"serious", "critical"}


@pytest.fixture
def service() -> Iterator[Service]:
    """A cluster with a round that is solved and not committed."""
    with Service() as made:
        made.call("put_cluster", dumps(generate("uniform", jobs=40, nodes=6, gpus=4, seed=0)))
        round_ = json.loads(made.call("start_round", b'{"time_limit_s": 2}'))["id"]
        for _ in range(600):
            if json.loads(made.call("round", path={"id": round_}))["state"] not in ("queued", "running"):
                break
            time.sleep(0.1)
        yield made


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast_of_text(scheme: int) -> None:
    """4.5 to 1 for text; squares that have another colour in the dark are named as the map draws them."""
    colours = schemes(PAGE)[scheme]
    assert len(schemes(PAGE)) == 2
    for name in ("ink", "soft", "bad"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
        assert contrast(colours[name], colours["hover"]) >= 4.5, name
    assert set(re.findall(r'rect\[fill="([^"]+)"\]', PAGE)) == {STATES["idle"], STATES["drained"]}


def test_regions_and_tables_are_named() -> None:
    """Boxes that scroll are reached by the keyboard; columns have a scope."""
    assert PAGE.count('class="scroll"') == len(
        re.findall(r'class="scroll"[^>]* role="region" tabindex="0" aria-label="', PAGE)
    )
    assert len(re.findall(r'<table id="\w+" aria-label="', PAGE)) == PAGE.count("<table ")
    assert 'cell.scope = "col"' in PAGE


def test_what_becomes_of_jobs_that_wait(service: Service) -> None:
    """By the last round: placed, which only a commit carries out, or why not."""
    queue = json.loads(Overviews(service).document())["queue"]
    placed = [job for job in queue if job["detail"] == NOT_COMMITTED["detail"]]
    assert len(queue) == 40
    assert 0 < len(placed) < 40
    assert all(job["reason"] and job["detail"] for job in queue if job not in placed)


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, False), (1280, True), (400, True)])
def test_axe_finds_nothing_serious(service: Service, tmp_path: Path, width: int, dark: bool) -> None:
    """On the page as a browser has filled it; nor does it scroll sideways, nor is text of the map below 9 px."""
    with HttpServer(service, parse_address("127.0.0.1:0", has_tokens=False)) as server:
        command = [
            *(str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"),
            *("--virtual-time-budget=4000", "--dump-dom", f"http://{server.address}/"),
        ]
        page = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert NOT_COMMITTED["detail"] in page
    found = checked(re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL), width=width, dark=dark)
    assert [entry for entry in found["violations"] if entry["impact"] in SERIOUS] == []
    assert (found["dark"], found["scrolls"]) == (dark, False)
    assert found["text_px"] >= 9
    assert found["rules"] > 20
