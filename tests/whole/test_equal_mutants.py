"""The table of mutants that no test can kill names mutants of the code as it is, so that the campaign can use it."""

import pytest

from campaigns.mutants import ROOT, equal_mutants, mutants


@pytest.mark.parametrize("package", ["check", "problem"])
def test_every_entry_is_a_mutant(package: str) -> None:
    """Otherwise a change of the code would leave reasons behind that are about nothing."""
    files = sorted((ROOT / "src/placeopt" / package).rglob("*.py"))
    found = {(f"{package}/{path.name}", mutant.key) for path in files for mutant in mutants(path.read_text("utf-8"))}
    assert [key for key in equal_mutants() if key[0].startswith(package) and key not in found] == []
