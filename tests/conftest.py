"""What all tests share."""

import pytest


@pytest.fixture(autouse=True)
def _wide_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are 100 columns wide wherever the tests run: runners of their own set 80."""
    monkeypatch.setenv("COLUMNS", "100")
