import re
import shutil
from pathlib import Path

import pytest
from own_files import own_files

from gemm_report.cli import BAD_INPUT, main
from gemm_report.commands.readme import CHECK_FAILED
from gemm_report.record import Record
from gemm_report.texts.kernels import figures, overview

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"
NAMES = ("NaiveUncoalesced", "Naive", "NaiveTransposed", "TiledTransposedStore", "Tiled")


def marked(part: str) -> str:
    return f"<!-- gemm_report:begin {part} -->\n<!-- gemm_report:end {part} -->\n"


README = "# The ladder\n" + marked("overview") + "by hand\n"
README += "".join(marked(f"rung {name}") for name in (*NAMES, "BlockTile1D", "Rasterized"))


@pytest.fixture
def project(ladder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "results").mkdir()
    (tmp_path / "kernels").mkdir()
    shutil.copy(ladder_path, tmp_path / "results" / "run.json")
    (tmp_path / "kernels" / "README.md").write_text(README, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_rung_gets_its_numbers_and_the_prose_stays(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernels", "results/run.json"]) == 0
    text = Path("kernels/README.md").read_text(encoding="utf-8")
    assert "\nby hand\n" in text
    tiled = text.partition("begin rung Tiled -->\n")[2].partition("\n<!--")[0].splitlines()
    assert len(tiled) == 3, "a line for each variant and precision"
    assert tiled[2].startswith("- INT32 at 1024, tile:16: **4.20 TOP/s** · ×1.45 of Naive")
    assert tiled[0].startswith(
        "- FP32 at 4096, tile:16: **7.90 TFLOP/s** · ×3.59 of TiledTransposedStore · "
        "11.8 % of peak · 15.4 % of cuBLASLt/algo:best · modelled FLOP/byte: "
        "0.240 of shared memory, 4.00 of L2, 683 of DRAM; limiter: shared memory, 7.99 TFLOP/s"
    )
    for name in ("ladder", "ladder_roofline"):
        assert f"(../results/readme/{name}.png)" in text
        assert (project / "results" / "readme" / f"{name}.png").stat().st_size > 1000
    assert "[record](../results/run.json)" in text
    assert "begin rung Rasterized -->\nNot timed at the ladder's size.\n<!--" in text
    assert capsys.readouterr().err == (
        "gemm-report: kernels/README.md: not in the record: Rasterized\n"
    )


def test_check_tells_a_stale_file_and_changes_nothing(project: Path) -> None:
    check = ["kernels", "results/run.json", "--check"]
    assert main(check) == CHECK_FAILED
    assert Path("kernels/README.md").read_text(encoding="utf-8") == README
    assert not Path("results/readme").exists()
    assert main(check[:-1]) == 0
    assert main(check) == 0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (marked("rung Naive"), "", "does not mention Naive: each needs the lines"),
        (marked("rung Tiled"), marked("rungs"), "unknown marker 'begin rungs'"),
        (marked("overview"), "", "needs one line '<!-- gemm_report:begin overview -->'"),
        ("<!-- gemm_report:end rung Tiled -->", "", "needs one line"),
        ("by hand\n", marked("rung Tiled"), "needs one line"),
    ],
)
def test_markers_that_are_not_right_are_named(
    old: str, new: str, expected: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = README.replace(old, new)
    Path("kernels/README.md").write_text(text, encoding="utf-8")
    assert main(["kernels", "results/run.json"]) == BAD_INPUT
    output = capsys.readouterr()
    assert output.err.count("\n") == 1
    assert expected in output.err
    assert Path("kernels/README.md").read_text(encoding="utf-8") == text


def test_a_file_that_is_not_there_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernels", "results/run.json", "--readme", "none.md"]) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1


def test_the_overview_is_the_ladder_with_its_libraries(ladder: Record, gpu: Record) -> None:
    lines = overview(ladder, "run.json", "pictures").splitlines()
    rows = [line for line in lines if line.startswith("| [") or line.startswith("| cuBLAS")]
    assert rows[1].startswith("| [Naive](#naive) | What Naive adds. | 6.08 | ×12.3 | 9.1 % |")
    assert rows[1].endswith("| L2, 3.96 TFLOP/s, exceeded because a cache helps |")
    assert rows[-1].startswith("| cuBLAS/math:pedantic |")
    assert "ladder_roofline.png" not in overview(gpu, "run.json", "pictures")


def test_a_kernel_may_come_from_a_second_record(ladder: Record, cpu: Record) -> None:
    name = next(row.kernel for row in cpu.rows if row.kernel not in NAMES)
    readme = KERNELS / "README.md"
    assert figures([ladder], name, readme) == "Not timed at the ladder's size."
    told = figures([ladder, cpu], name, readme)
    assert f" · {cpu.device.name} · [record](" in told
    assert told.endswith(f"{cpu.path.name})")


def test_the_ladder_told_is_what_its_records_give() -> None:
    readme = KERNELS / "README.md"
    links = re.findall(r"\[record\]\(\.\./(results/[^)]+)\)", readme.read_text("utf-8"))
    records = [str(ROOT / record) for record in dict.fromkeys(links)]
    arguments = ["--readme", str(readme), "--pictures", str(ROOT / "results" / "readme")]
    assert main(["kernels", *records, *arguments, "--check"]) == 0


def test_every_kernel_of_our_own_is_told_and_nothing_else() -> None:
    text = (KERNELS / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r"\]\(((?:cpu|simt|tensor|library)/[^)#]+)[#)]", text):
        assert (KERNELS / name).is_file(), f"kernels/README.md tells of {name}, which is not there"
    folders = ("cpu", "simt", "tensor")
    sources = own_files(
        *(f"kernels/{each}/**/*{kind}" for each in folders for kind in (".cpp", ".cu"))
    )
    sources = [path for path in sources if not path.stem.endswith("_test")]
    assert len(sources) > 4
    for path in sources:
        name = path.relative_to(KERNELS).as_posix()
        assert f"\n[{name}]({name})\n" in text, f"kernels/README.md does not tell of {name}"
