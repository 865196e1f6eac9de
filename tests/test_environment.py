"""Cores that a process may use."""

from pathlib import Path

import pytest

from placeopt import environment


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/\n", {"cpu.max": "150000 100000"}, 2),
        ("0::/user/session\n", {"user/session/cpu.max": "max 100000", "user/cpu.max": "100000 100000"}, 1),
        ("4:memory:/a\n1:cpu,cpuacct:/a\n", {"cpu,cpuacct/a/cpu.cfs_quota_us": "250000"}, 3),
        ("1:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1"}, 8),
        ("1:cpu:/a\n0::/\n", {}, 8),
        ("", {}, 8),
    ],
)
def test_a_quota_of_any_group_above_the_process_counts(
    own: str, files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both versions of control groups, rounded up; without a quota the affinity alone counts."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        if name.endswith("quota_us"):
            (tmp_path / name).with_name("cpu.cfs_period_us").write_text("100000")
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(environment, "CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(environment, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8))
    assert environment.usable_cores() == cores
