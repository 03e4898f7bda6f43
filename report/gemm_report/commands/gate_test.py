import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import BAD_INPUT, main

Rewritten = Callable[..., Path]
OK, REGRESSION, NOT_ENOUGH = 0, 1, 2


def of(commit: str, **device: object) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        document["context"]["gemm"]["commit"] = commit
        document["context"]["gemm"]["device"].update(device)
        benchmarks = document["benchmarks"]
        document["benchmarks"] = [
            each for each in benchmarks if not (each.get("gemm") or {}).get("failed")
        ]

    return change


@pytest.fixture
def results(rewritten: Rewritten, tmp_path: Path) -> Path:
    """Three processes of commit aaaa1111bbbb, and a newer one of another that is slower."""
    for i, factor in enumerate((1.0, 1.001, 0.999)):
        rewritten(f"results/gpu/2025010{i}T000000Z-aaaa1111bbbb.json", factor, of("aaaa1111bbbb"))
    rewritten("results/gpu/20250201T000000Z-cccc2222dddd.json", 1.3, of("cccc2222dddd"))
    return tmp_path / "results"


def gate(*arguments: object) -> int:
    return main(["gate", *map(str, arguments)])


def said_in_one_line(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


def test_the_newest_record_is_held_against_those_of_a_commit(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(results, "--baseline=aaaa1111") == REGRESSION
    said = capsys.readouterr().out
    assert "BASE  3 processes, commit aaaa1111bbbb" in said
    assert "NEW   20250201T000000Z-cccc2222dddd.json" in said
    assert said.startswith("REGRESSION: of ")
    assert gate(results / "gpu", "--baseline=aaaa1111bbbb" + "0" * 28) == REGRESSION


def test_the_newest_and_those_of_its_commit_are_the_processes(
    results: Path, rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    for i, factor in enumerate((1.05, 1.051, 1.049)):
        rewritten(f"results/gpu/2025030{i}T000000Z-eeee2222dddd.json", factor, of("eeee2222dddd"))
    assert gate(results, "--baseline=aaaa1111") == REGRESSION
    said = capsys.readouterr().out
    assert "BASE  3 processes" in said
    assert "NEW   3 processes, commit eeee2222dddd" in said


def test_the_baseline_may_be_a_path(results: Path) -> None:
    record = results / "gpu" / "20250100T000000Z-aaaa1111bbbb.json"
    assert gate(results, "--baseline", record) == REGRESSION
    options = ("--baseline=aaaa1111", "--require-power=30")
    assert gate(results, "--new", record, *options) == OK


def test_the_baseline_may_be_what_git_calls_a_commit(
    results: Path, rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
        command = ["git", "-C", str(results), *who, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch=trunk")
    git("commit", "--quiet", "--allow-empty", "--message=One")
    commit = git("rev-parse", "HEAD")[:12]
    assert gate(results, "--baseline=trunk") == BAD_INPUT
    assert f"has no other record of trunk (commit {commit})" in said_in_one_line(capsys)
    rewritten(f"results/gpu/20250110T000000Z-{commit}.json", 1.0, of(commit))
    rewritten(f"results/gpu/20250111T000000Z-{commit}-dirty.json", 1.3, of(f"{commit}-dirty"))
    assert gate(results, "--baseline=trunk", "--threshold=25") == REGRESSION
    assert f"BASE  20250110T000000Z-{commit}.json" in capsys.readouterr().out


def test_a_baseline_without_records_gives_one_line(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(results, "--baseline=ffff") == BAD_INPUT
    assert "has no other record of ffff on Test GPU" in said_in_one_line(capsys)
    assert gate(results, "--baseline=cccc2222dddd") == BAD_INPUT, "it is the new one itself"
    assert "no other record" in said_in_one_line(capsys)
    assert gate(tmp_path / "none", "--baseline=aaaa1111") == BAD_INPUT
    assert "is no folder" in said_in_one_line(capsys)


def test_a_beginning_of_two_commits_is_refused(
    results: Path, rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    rewritten("results/gpu/20250105T000000Z-aaaa1111ffff.json", 1.002, of("aaaa1111ffff"))
    assert gate(results, "--baseline=aaaa1111") == BAD_INPUT
    assert "aaaa1111bbbb, aaaa1111ffff" in said_in_one_line(capsys)
    assert gate(results, "--baseline=aaaa1111b") == REGRESSION


def test_another_device_is_no_baseline(
    results: Path, rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    rewritten("results/other/20250301T000000Z-eeee.json", 1.0, of("eeee", name="Other GPU"))
    assert gate(results, "--baseline=aaaa1111") == BAD_INPUT
    assert "on Other GPU" in said_in_one_line(capsys)
    assert gate(results, "--baseline=aaaa1111", "--across=device") == OK


def test_records_made_like_the_new_one_come_first(
    results: Path, rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    def otherwise(document: Any) -> None:
        of("aaaa1111bbbb")(document)
        document["context"]["gemm"]["method"]["state"] = "burst"

    rewritten("results/gpu/20250106T000000Z-aaaa1111bbbb.json", 1.3, otherwise)
    assert gate(results, "--baseline=aaaa1111") == REGRESSION
    said = capsys.readouterr().out
    assert "BASE  3 processes" in said
    assert "burst" not in said


def test_bad_files_are_named_and_the_rest_judged(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = results / "gpu" / "20250301T000000Z-eeee.json"
    newest.write_text("{", encoding="utf-8")
    assert gate(results, "--baseline=aaaa1111", "--new", results / "gpu" / newest.name) == BAD_INPUT
    assert str(newest) in said_in_one_line(capsys)
    assert gate(results, "--baseline=aaaa1111") == REGRESSION
    assert str(newest) in capsys.readouterr().err
    (results / "gpu" / "20250201T000000Z-cccc2222dddd.json").unlink()
    assert gate(results, "--baseline=aaaa1111") == BAD_INPUT, "nothing is slower, but one is bad"


def test_too_little_data_ends_with_2(results: Path, rewritten: Rewritten) -> None:
    equal = rewritten("results/gpu/20250401T000000Z-ffff.json", 1.002, of("ffff"))
    record = results / "gpu" / "20250100T000000Z-aaaa1111bbbb.json"
    options = ("--new", equal, "--baseline", record)
    assert gate(results, *options) == NOT_ENOUGH
    assert gate(results, *options, "--require-power=30") == OK


def test_a_job_of_github_gets_its_summary(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, elsewhere = tmp_path / "summary.md", tmp_path / "comment.md"
    summary.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    gate(results, "--baseline=aaaa1111", "--markdown", elsewhere)
    assert summary.read_text(encoding="utf-8") == "before\n"
    gate(results, "--baseline=aaaa1111")
    told = elsewhere.read_text(encoding="utf-8")
    assert told.startswith("### REGRESSION")
    assert summary.read_text(encoding="utf-8") == "before\n" + told


def test_a_summary_that_cannot_be_written_is_told_after_the_verdicts(
    results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    assert gate(results, "--baseline=aaaa1111", "--threshold=100") == BAD_INPUT
    said = capsys.readouterr()
    assert "no regression" in said.out.splitlines()[0]
    assert said.err.count("\n") == 1
    assert str(tmp_path) in said.err


@pytest.mark.parametrize("reference", ["--upload-pack=x", "", "HEAD^{tree}", "a\x00b", "*", "\n"])
def test_no_reference_is_more_than_a_name(reference: str, results: Path) -> None:
    assert gate(results, f"--baseline={reference}") == BAD_INPUT
