import gzip
from pathlib import Path

import pytest

from gemm_report.cli import main
from gemm_report.document import BAD_INPUT


@pytest.mark.parametrize(
    ("given", "output", "folders"),
    [
        (["2025-0123.json"], None, ["2025-0123"]),
        (["a.json"], "out", ["out"]),
        (["a.json", "b.json"], "out", ["out/a", "out/b"]),
        (["a.b.json.gz", "...json"], "in/out", ["in/out/a.b", "in/out/record"]),
    ],
)
def test_figures_of_a_record_are_in_a_folder(
    given: list[str],
    output: str | None,
    folders: list[str],
    gpu_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in given:
        content = gpu_path.read_bytes()
        Path(name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    options = ["--only=headline, sizes_f32_dark", *(["-o", output] if output else [])]
    assert main(["figures", *given, *options]) == 0
    written = capsys.readouterr().out.splitlines()
    assert all(Path(path).stat().st_size for path in written)
    assert set(written) == {
        f"{folder}/{name}.{end}"
        for folder in folders
        for name in ("headline", "sizes_f32_dark")
        for end in ("csv", "png", "svg")
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{record}", "--only=pie"], "has no such figure: choose among headline, ladder_f32"),
        (["{record}", "--hierarchy=("], "is no regular expression"),
        (["{record}", "{again}"], "given with another of this name"),
        (["{record}", "-o", "{record}"], "File exists"),
    ],
)
def test_a_bad_choice_is_one_line_and_no_file(
    arguments: list[str],
    told: str,
    gpu_path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    again = tmp_path / gpu_path.name
    again.write_bytes(gpu_path.read_bytes())
    words = [each.format(record=gpu_path, again=again) for each in arguments]
    assert main(["figures", "-o", str(tmp_path / "out"), *words]) == BAD_INPUT
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1
    assert [*tmp_path.iterdir()] == [again]


@pytest.mark.parametrize("command", ["figures", "report"])
def test_a_bad_record_is_named_and_the_others_of_its_folder_are_drawn(
    command: str, gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "bad.json").write_text("{", encoding="utf-8")
    for name in ("a.json", "b #<i>.json"):
        (folder / name).write_bytes(gpu_path.with_name("cpu.json").read_bytes())
    assert main([command, str(folder), "-o", str(out)]) == BAD_INPUT
    said = capsys.readouterr().err
    assert "bad.json" in said and said.count("\n") == 1
    drawn = "index.html" if command == "report" else "headline.svg"
    assert {path.parent.name for path in out.rglob(drawn)} == {"a", "b #<i>"}
