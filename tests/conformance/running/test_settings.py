from dataclasses import fields
from typing import Any

from refssm.conformance.calling.finding import PACKAGE, _ours
from refssm.conformance.running.settings import OF_REPORTS, Settings


def test_other_processes_get_every_setting_but_those_of_reports():
    told: dict[str, Any] = {field.name: f"another {field.name}" for field in fields(Settings)}
    sent, usual = Settings(**told).of_verdicts, Settings(folder=None)
    for name in told:
        wanted = getattr(usual, name) if name in OF_REPORTS else told[name]
        assert getattr(sent, name) == wanted, name


def test_what_is_reported_and_kept_decides_no_verdict():
    kept = {field.name for field in fields(Settings)} - {*OF_REPORTS}
    assert kept == {
        "profile", "seed", "cases", "preset", "types", "only_checks", "where", "older", "shrink",
    }  # fmt: skip


def test_a_folder_beside_refssm_whose_name_begins_alike_is_not_ours():
    assert _ours(str(PACKAGE / "scan" / "linear.py"))
    assert not _ours(f"{PACKAGE}_mine/ops.py")
