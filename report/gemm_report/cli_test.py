import gzip
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from gemm_report.cli import BAD_INPUT, COMMANDS, main

FIGURES = OF_A_CPU = ("headline", "ladder_f32", "sizes_f32")


def files(figures: Sequence[str]) -> set[str]:
    return {f"{name}.{end}" for name in figures for end in ("png", "svg", "csv")}


FILES = files(FIGURES)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_figures_go_beside_the_record(
    gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Path(shutil.copy(gpu_path, tmp_path / "2025-0123.json"))
    assert main(["figures", str(record)]) == 0
    assert names(tmp_path / "2025-0123") == FILES
    assert {Path(line).name for line in capsys.readouterr().out.splitlines()} == FILES


def test_figures_go_where_they_are_told_to(gpu_path: Path, tmp_path: Path) -> None:
    assert main(["figures", str(gpu_path), "-o", str(tmp_path / "out")]) == 0
    assert names(tmp_path / "out") == FILES


def test_several_records_get_a_folder_each(gpu_path: Path, tmp_path: Path) -> None:
    cpu_path = gpu_path.with_name("cpu.json")
    assert main(["figures", str(gpu_path), str(cpu_path), "-o", str(tmp_path)]) == 0
    assert names(tmp_path) == {"gpu", "cpu"}
    assert names(tmp_path / "cpu") == files(OF_A_CPU)


def test_a_name_of_points_is_no_way_out(gpu_path: Path, tmp_path: Path) -> None:
    odd = [shutil.copy(gpu_path, tmp_path / name) for name in ("...json", "a.b.json.gz")]
    packed = Path(odd[1])
    packed.write_bytes(gzip.compress(packed.read_bytes()))
    assert main(["figures", *map(str, odd), "-o", str(tmp_path / "in" / "out")]) == 0
    assert names(tmp_path / "in") == {"out"}
    assert names(tmp_path / "in" / "out") == {"record", "a.b"}


def test_records_of_one_name_are_not_written_over_each_other(
    gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = shutil.copy(gpu_path, tmp_path)
    assert main(["figures", str(gpu_path), str(again), "-o", str(tmp_path / "out")]) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_gives_one_line(
    gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["figures", str(gpu_path), "-o", str(tmp_path / "file")]) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_has_examples_that_parse_and_exit_codes(
    command: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*([command] if command else []), "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    examples, codes = said.split("\nexamples:\n")[1].split("\nexit codes:\n")
    assert "  0  " in codes
    assert "  3  " in codes
    for module in COMMANDS.values():
        monkeypatch.setattr(module, "run", lambda options: 0)
    lines = [line.strip() for line in examples.replace("\\\n", "").split("\n")]
    lines = [line.partition("&&")[0] for line in lines if line.startswith("gemm-report ")]
    assert lines
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, line


def test_help_and_errors_name_what_was_called(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*arguments: str) -> str:
        with pytest.raises(SystemExit):
            main(arguments)
        return "".join(capsys.readouterr())

    assert "see gemm-report explain --help" in said("explain")
    monkeypatch.setenv("GEMM_REPORT_AS", "tools/report")
    assert "see tools/explain --help" in said("explain")
    assert "see tools/report figures --help" in said("figures")
    assert "\n  tools/explain WarpTile 4096\n" in said("explain", "--help")
    assert "gemm-report" not in said("explain", "--help") + said("report", "--help")
    whole = said("--help")
    assert whole.startswith("usage: tools/report ")
    assert "\n  tools/report report results/" in whole
    assert "\n  tools/explain WarpTile 4096\n" in whole
