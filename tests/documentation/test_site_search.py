"""The search of the built site, in a browser without a network, on pages opened as files."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / "site"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ELSEWHERE = re.compile(r'<(?:script|img|iframe)\b[^>]*\ssrc="(?:https?:)?//|<link\b[^>]*"stylesheet"[^>]*"https?://')
RESULT = re.compile(r'<a href="([^"]+)"[^>]*class="md-search-result__link"')


@pytest.fixture
def site() -> Path:
    """The folder of the site, which ``make pages`` builds and ``make test`` runs first."""
    if not SITE.is_dir():
        pytest.skip("there is no site; make pages builds it")
    return SITE


def search(page: Path, term: str, profile: Path) -> list[str]:
    """Return the links that a search for ``term`` shows on a page; no host name resolves."""
    assert CHROMIUM is not None
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"),
        *("--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000", "--dump-dom"),
        f"{page.as_uri()}?q={term}",
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    return RESULT.findall(shown)


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    """No network: scripts, styles and pictures lie beside the pages."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    assert [page.name for page in pages if ELSEWHERE.search(page.read_text(encoding="utf-8"))] == []


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize(
    ("page", "term", "target"),
    [
        ("index.html", "gang", "import.html"),
        ("index.html", "solve_in_parts", "reference/python.html"),
        ("reference/python.html", "hwloc", "topology.html"),
    ],
)
def test_search_finds_pages(site: Path, tmp_path: Path, page: str, term: str, target: str) -> None:
    """From the start page and from a page in a folder."""
    found = search(site / page, term, tmp_path)
    assert found != []
    assert any(target in link for link in found), found


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_search_finds_nothing_that_is_not_there(site: Path, tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing."""
    assert search(site / "index.html", "zzyzx", tmp_path) == []
