"""The generated regions of this repository's pages, made from records of tests and stored ones."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from own_files import own_files

from gemm_report.cli import main
from gemm_report.commands.readme import CHECK_FAILED
from gemm_report.document import BAD_INPUT
from gemm_report.readme import renewed, table
from gemm_report.record import Record, Versus, read_record

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"


def marked(part: str) -> str:
    return f"<!-- gemm_report:begin {part} -->\nold\n<!-- gemm_report:end {part} -->\n"


PAGES = {
    "README.md": f"# gemm_bench\n{marked('picture')}by hand\n{marked('table')}the end\n",
    "kernels/README.md": f"# The ladder\n{marked('overview')}by hand\n",
}
RECORD = {"README.md": "results/gpu.json", "kernels/README.md": "results/ladder.json"}


def renew(page: str, *options: str) -> int:
    return main(["readme", RECORD[page], "--readme", page, *options])


@pytest.fixture
def project(gpu_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in PAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    shutil.copytree(gpu_path.parent, tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_made_of_its_record_and_checked_against_it(
    page: str, project: Path, snapshot: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert renew(page, "--check") == CHECK_FAILED
    assert Path(page).read_text("utf-8") == PAGES[page] and not Path("results/readme").exists()
    capsys.readouterr()
    assert renew(page) == 0 and capsys.readouterr().err == ""
    text = Path(page).read_text(encoding="utf-8")
    assert text == snapshot
    for picture in re.findall(r"(results/readme/\w+\.png)", text):
        assert Path(picture).stat().st_size > 1000
    assert renew(page, "--check") == 0
    Path(page).write_text(text.replace("TFLOP/s", "PFLOP/s"), encoding="utf-8")
    assert renew(page, "--check") == CHECK_FAILED


@pytest.mark.parametrize(
    ("page", "old", "new", "expected"),
    [
        ("README.md", "end table", "end", "needs one line"),
        ("README.md", "by hand", marked("table"), "needs one line"),
        ("README.md", marked("picture"), "end picture --> begin picture -->", "needs one line"),
        ("kernels/README.md", marked("overview"), "", "has no region to renew"),
    ],
)
def test_markers_that_are_not_right_are_named(
    page: str,
    old: str,
    new: str,
    expected: str,
    project: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path(page)
    path.write_text(text := path.read_text("utf-8").replace(old, new), encoding="utf-8")
    assert renew(page) == BAD_INPUT
    said = capsys.readouterr().err
    assert expected in said and said.count("\n") == 1
    assert path.read_text("utf-8") == text and not Path("results/readme").exists()
    assert renew(page, "--readme=none.md") == BAD_INPUT


def test_a_record_without_a_library_or_an_end_says_so(cpu: Record) -> None:
    told = table(Path("README.md"), [cpu])
    (line,) = (line for line in told[0].splitlines() if line.startswith("| FP"))
    assert line.endswith("| - | - | no library timed in layout nn | - |")
    assert " · incomplete run · [record]" in told[1]
    versus = Versus("OpenBLAS", 0.5, 0.4, 0.6, library=True, seconds=1.0)
    rows = [replace(row, versus=versus) for row in cpu.rows]
    (line,) = (
        x
        for x in table(Path("README.md"), [replace(cpu, rows=tuple(rows))])[0].splitlines()
        if x.startswith("| FP")
    )
    assert re.search(r"\| 268 MFLOP/s, OpenBLAS \| 0\.50 \(", line), "interleaved alone"


def test_further_records_add_lines_and_their_figures(project: Path, gpu_path: Path) -> None:
    document = json.loads(gpu_path.read_text("utf-8"))
    for entry in document["benchmarks"]:
        if entry.get("gemm"):
            entry["gemm"] |= {"batch_count": 8, "tokens": "zipf"}
    Path("results/moe.json").write_text(json.dumps(document), encoding="utf-8")
    Path("docs").mkdir()
    Path("docs/page.md").write_text(marked("grouped") + marked("batched"), encoding="utf-8")
    both = ["results/gpu.json", "results/moe.json"]
    records = [read_record(Path(path)) for path in both]
    text, _ = renewed(Path("README.md"), records, Path("results/readme"))
    lines = [line.split(" | ")[:3] for line in text.splitlines() if line.startswith("| FP32")]
    assert lines == [
        ["| FP32", "nn", "4096"],
        ["| FP32, grouped", "nn", "grouped:8x4096x4096x4096/zipf"],
    ]
    assert "[record](results/gpu.json); FP32, grouped ([record](results/moe.json))" in text, "alike"
    where = ["--readme=docs/page.md"]
    assert main(["readme", *both, *where, "--check"]) == CHECK_FAILED
    assert main(["readme", *both, *where]) == 0 == main(["readme", *both, *where, "--check"])
    text = Path("docs/page.md").read_text("utf-8")
    assert (
        'src="../results/readme/grouped_f32.png"' in text
        and "[record](../results/moe.json)" in text
    )
    assert marked("batched") in text, "what no record has stays"
    assert Path("results/readme/grouped_f32_dark.png").stat().st_size > 1000


@pytest.mark.parametrize("page", [*PAGES, "docs/precisions-and-layouts.md"])
def test_the_pages_of_the_project_are_what_their_records_give(page: str) -> None:
    readme = ROOT / page
    found = re.findall(r"\[record\]\((?:\.\./)?(results/[^)]+)\)", readme.read_text("utf-8"))
    records = [str(ROOT / record) for record in dict.fromkeys(found)]
    where = ["--readme", str(readme), "--pictures", str(ROOT / "results" / "readme")]
    assert not records or main(["readme", *records, *where, "--check"]) == 0
    assert records or page not in PAGES


def test_every_kernel_of_our_own_is_told_and_nothing_else() -> None:
    text = (KERNELS / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r"\]\(((?:cpu|ladder|best|library)/[^)#]+)[#)]", text):
        assert (KERNELS / name).is_file(), f"kernels/README.md tells of {name}, which is not there"
    folders = ("cpu", "ladder", "best")
    sources = own_files(
        *(f"kernels/{each}/**/*{kind}" for each in folders for kind in (".cpp", ".cu"))
    )
    without = ("_test", "plans")  # which are no kernels
    sources = [path for path in sources if not path.stem.endswith(without)]
    assert len(sources) > 4
    for path in sources:
        name = path.relative_to(KERNELS).as_posix()
        assert f"]({name})" in text, f"kernels/README.md does not tell of {name}"
