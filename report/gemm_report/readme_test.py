import re
import shutil
from pathlib import Path

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.commands.readme import CHECK_FAILED
from gemm_report.readme import table
from gemm_report.record import Record
from gemm_report.rows import standings
from gemm_report.text import percent

README = """# gemm_bench
<!-- gemm_report:begin picture -->
<!-- gemm_report:end picture -->
by hand
<!-- gemm_report:begin table -->
old
<!-- gemm_report:end table -->
the end
"""
RESULTS = """# Results
<!-- gemm_report:begin kernels -->
<!-- gemm_report:end kernels -->
"""


@pytest.fixture
def project(gpu_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "results" / "test").mkdir(parents=True)
    shutil.copy(gpu_path, tmp_path / "results" / "test" / "run.json")
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "results.md").write_text(RESULTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_only_what_is_between_the_markers_changes(project: Path) -> None:
    assert main(["readme", "results/test/run.json"]) == 0
    text = (project / "README.md").read_text(encoding="utf-8")
    assert text.startswith(
        "# gemm_bench\n<!-- gemm_report:begin picture -->\n![The fastest kernel of each precision"
    )
    assert "-->\nby hand\n<!--" in text
    assert text.endswith("<!-- gemm_report:end table -->\nthe end\n")
    assert "old" not in text
    assert "[record](results/test/run.json)" in text
    for name in ("headline", "roofline"):
        assert f"(results/readme/{name}.png)" in text
        assert (project / "results" / "readme" / f"{name}.png").stat().st_size > 1000


def test_each_precision_is_one_line(project: Path, gpu: Record) -> None:
    main(["readme", "results/test/run.json"])
    text = (project / "README.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| FP")]
    (found,) = standings(gpu)
    assert found.worst
    assert found.of_library
    assert lines == [
        "| FP32 | nn | 256 to 4096 | 7.33 TFLOP/s at 4096, Tiled/tile:16 | 48.8 TFLOP/s, "
        f"cuBLAS/math:default | {percent(found.of_library)} | {found.worst.size}: "
        f"{percent(found.worst.of_library)} |"
    ]
    assert f" · timed with CUDA events · {gpu.conformance} · [record]" in text


def test_a_precision_without_a_library_says_so(cpu: Record) -> None:
    (line,) = (line for line in table(cpu, "run.json").splitlines() if line.startswith("| FP"))
    assert line.endswith("| not timed | - | - |")


def test_the_page_of_results_has_each_kernel_by_its_fastest_variant(project: Path) -> None:
    main(["readme", "results/test/run.json"])
    text = (project / "docs" / "results.md").read_text(encoding="utf-8")
    assert (
        "| Tiled/tile:16 | a block shares tiles of A and B in shared memory | FP32 | 4096 |" in text
    )
    assert "Tiled/tile:8" not in text
    assert "Not timed: 1 skipped, 1 failed." in text
    assert text.count("| cuBLAS/math:default |") == 3
    assert "[record](../results/test/run.json)" in text


def test_the_results_have_clocks_and_conditions_where_the_record_has_them(
    project: Path, gpu: Record
) -> None:
    main(["readme", "results/test/run.json"])
    page = project / "docs" / "results.md"
    text = page.read_text(encoding="utf-8")
    assert "| % of peak | % of peak at actual clock | % of library |" in text
    assert "| TF32 | 4096 | 302 TFLOP/s † | 61.0 % | 71.5 % | 100.0 % |" in text
    assert "\n† Clocks limited by: power cap.\n" in text
    assert "| 623 GFLOP/s \\* |" in text
    assert "\n\\* Deviates from NVIDIA's measurement guideline: 50 % interval of" in text
    assert f" · timed with CUDA events · {gpu.conformance} · [record]" in text

    earlier = gpu.path.with_name("cpu.json").read_text(encoding="utf-8")
    Path("results/test/run.json").write_text(earlier, encoding="utf-8")
    main(["readme", "results/test/run.json"])
    text = page.read_text(encoding="utf-8")
    assert "| % of peak | % of library |" in text
    assert "clock policy not known" in text
    assert "\\* Dev" not in text


def test_check_tells_a_stale_readme_and_changes_nothing(project: Path) -> None:
    check = ["readme", "results/test/run.json", "--check"]
    assert main(check) == CHECK_FAILED
    assert (project / "README.md").read_text(encoding="utf-8") == README
    assert not (project / "results" / "readme").exists()
    assert main(check[:-1]) == 0
    assert main(check) == 0
    for page in (project / "README.md", project / "docs" / "results.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("TFLOP/s", "PFLOP/s"), encoding="utf-8")
        assert main(check) == CHECK_FAILED
        page.write_text(text, encoding="utf-8")
    assert main(check) == 0


@pytest.mark.parametrize(
    "text",
    [
        "no markers\n",
        README.replace("end table", "end"),
        README.replace("begin table", "begin"),
        README.replace("old", "<!-- gemm_report:begin table -->"),
        README.replace("old", "<!-- gemm_report:end table -->"),
        README.replace("end picture", "x").replace("begin picture", "end picture"),
        None,
    ],
)
def test_a_page_without_its_markers_is_refused(
    text: str | None, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = project / "README.md"
    readme.write_text(text, encoding="utf-8") if text else readme.unlink()
    assert main(["readme", "results/test/run.json"]) == BAD_INPUT
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert not (project / "results" / "readme").exists()


def test_the_readme_of_the_project_is_what_its_record_gives() -> None:
    root = Path(__file__).parents[2]
    (record,) = set(
        re.findall(r"\[record\]\((results/[^)]+\.json)\)", (root / "README.md").read_text("utf-8"))
    )
    arguments = [
        "--readme",
        str(root / "README.md"),
        "--pictures",
        str(root / "results" / "readme"),
        "--results",
        str(root / "docs" / "results.md"),
    ]
    assert main(["readme", str(root / record), *arguments, "--check"]) == 0
