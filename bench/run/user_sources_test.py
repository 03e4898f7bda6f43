"""Twenty hostile .cu files in one run with ten good ones, and the examples, on the GPU, whole."""

import json
import re
from pathlib import Path

import pytest
from own_files import own_files
from test_runs import ROOT, has_gpu, run

pytestmark = pytest.mark.skipif(not has_gpu(), reason="no GPU")

QUICK = [
    "--gemm_warmup=0.1",
    "--gemm_sampling=0.1",
    "--gemm_peaks=nominal",
    "--gemm_shapes=512",
    "--gemm_kernel_limit=15",
]
# The README's example after its head, with a place for something bad.
NAIVE = (ROOT / "examples" / "naive.cu").read_text(encoding="utf-8")
GOOD = NAIVE[NAIVE.index("#include") :].replace("TILE", "16").replace("= sum;", "= sum;\n  BAD")


def inside(statement: str) -> str:
    return GOOD.replace("BAD", statement)


def launched(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace("BAD", "").replace(old, new)


# A loop without effects may be taken away by the compiler.
FOREVER = 'for (;;) asm volatile("nanosleep.u32 1000;");'
HOSTILE = {
    "does_not_compile": (inside("x;"), 'does_not_compile.cu(9): error: identifier "x"'),
    "has_no_entry": (inside("").replace("launch(gemm::Call", "f(gemm::Call"), 'has no "launch"'),
    "includes_nothing": ('#include "missing.h"\n' + inside(""), "missing.h"),
    "hangs": (inside(FOREVER), "did not end within 15 s"),
    "hangs_in_launch": (
        launched("  return gemm", f"  {FOREVER}\n  return gemm"),
        "did not end within 15 s",
    ),
    "illegal_address": (inside("c[1ll << 40] = 1;"), "illegal memory access"),
    "null_pointer": (inside("*(volatile int*)nullptr = 1;"), "illegal memory access"),
    "misaligned": (inside("*(volatile double*)((char*)c + 4) = 1;"), "misaligned address"),
    "asserts": (inside("assert(n < 0 || i > 0 || j > 0);"), "assert"),
    "traps": (inside('asm("trap;");'), ""),
    "too_many_threads": (launched("{16, 16},", "{64, 64},"), "64x64x1 threads"),
    "no_threads": (launched("{16, 16},", "{0, 16},"), "0x16x1 threads"),
    "no_blocks": (launched("gemm::blocks(p.n, 16)", "0"), "0x32x1 blocks"),
    "too_much_shared": (
        launched("p.m, p.n, p.k);", "p.m, p.n, p.k).with_shared(1 << 20);"),
        "1048576 bytes of dynamic shared memory",
    ),
    "stack_overflow": (
        "__device__ __noinline__ int f(int x) { volatile int y[256]; y[x % 256] = x; "
        "return x == 0 ? 0 : f(x - 1) + y[(x + 1) % 256]; }\n"
        + inside("c[0] = f(1 << 20) * 0 + sum;"),
        "",
    ),
    "out_of_memory": (inside("float* x = (float*)malloc(1ll << 40); x[i] = 1;"), "illegal"),
    "nans": (inside("c[i * n + j] = __int_as_float(0x7fffffff);"), "are NaN, everywhere"),
    "is_wrong": (inside("if (i == 3 && j == 5) c[i * n + j] += 1;"), "c[3,5] ="),
    "transposes": (
        GOOD.replace("BAD", "").replace("c[i * n + j] = sum", "c[j * n + i] = sum"),
        "hold the transpose",
    ),
    "leaves_out_tiles": (
        GOOD.replace("BAD", "").replace(
            "  float sum", "  if (blockIdx.x == 1) return;\n  float sum"
        ),
        "were never written, in all of columns 16 to 31",
    ),
}


def test_ten_good_rows_and_twenty_explained_failures(tmp_path: Path) -> None:
    assert len(HOSTILE) == 20
    files = []
    for i, (name, (text, _)) in enumerate(HOSTILE.items()):
        (tmp_path / f"{name}.cu").write_text(text)
        files.append(f"{name}.cu")
        if i % 2 == 0:
            (tmp_path / f"good{i}.cu").write_text(inside(""))
            files.append(f"good{i}.cu")
    done = run(
        *QUICK,
        "--gemm_kernel=" + ",".join(files),
        "--benchmark_out=record.json",
        cwd=tmp_path,
        timeout=900,
    )
    assert done.returncode == 1, done.stderr
    document = json.loads((tmp_path / "record.json").read_text())
    assert document["context"]["gemm"]["complete"]
    rows = {row["gemm"]["kernel"]: row["gemm"] for row in document["benchmarks"]}
    assert len(rows) == 30
    for name, row in rows.items():
        if name in HOSTILE:
            assert row["failed"], name
            assert HOSTILE[name][1] in row["failed"], name
            assert "\n" not in row["failed"], name
            assert str(ROOT) not in row["failed"], name
        else:
            assert row["failed"] is None, name
            assert row["verification"]["passed"], name
            assert row["of_library"] > 0, name


def test_a_sweep_is_a_row_for_each_value(tmp_path: Path) -> None:
    text = inside("").replace("16", "TILE")
    (tmp_path / "swept.cu").write_text(text)
    done = run(*QUICK, "--gemm_kernel=swept.cu", "--gemm_define=TILE:8,16,32", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for tile in (8, 16, 32):
        assert f"swept/TILE:{tile}/f32/512x512x512" in done.stdout


def examples(precision: str) -> list[str]:
    """FILE or FILE:ENTRY of those in this precision, as the commands in their heads say."""
    items = []
    for file in own_files("examples/*.cu"):
        text = file.read_text()
        said = re.search(r"--gemm_precisions=(\w+)", text)
        if (said[1] if said else "f32") == precision:
            entries = re.findall(rf"[=,]{file.stem}\.cu(:\w+|)", text) or [""]
            items += [f"{file}{entry}" for entry in dict.fromkeys(entries)]
    return items


def verified(precision: str, shapes: str, folder: Path, *arguments: str) -> list[str]:
    items = examples(precision)
    done = run(
        *QUICK,
        "--gemm_kernel=" + ",".join(items),
        "--gemm_define=TILE:16",
        f"--gemm_precisions={precision}",
        f"--gemm_shapes={shapes}",
        "--benchmark_out=record.json",
        *arguments,
        cwd=folder,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row["gemm"] for row in json.loads((folder / "record.json").read_text())["benchmarks"]]
    for row in rows:
        assert row["failed"] is None, row["kernel"]
        assert row["verification"]["passed"], row["kernel"]
    return [row["kernel"] for row in rows]


@pytest.mark.parametrize(("precision", "files"), [("f32", 16), ("s32", 2), ("bf16", 1)])
def test_the_examples_are_right_at_512_and_at_an_odd_shape(
    precision: str, files: int, tmp_path: Path
) -> None:
    kernels = verified(precision, "512,131x77x203", tmp_path)
    assert len(kernels) == 2 * len(set(kernels)) == 2 * files


def test_a_source_gets_the_groups_and_batches_that_it_declares(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "grouped.cu").read_text()
    declared = "constexpr unsigned gemm_kernel_takes"
    (tmp_path / "grouped.cu").write_text(text)
    (tmp_path / "skips.cu").write_text(
        text.replace("  float sum", "  if (group == 1) return;\n  float sum")
    )
    (tmp_path / "silent.cu").write_text(text.replace(declared, "constexpr unsigned other"))
    files = "--gemm_kernel=grouped.cu,skips.cu,silent.cu"
    shapes = "--gemm_shapes=grouped:5x70x77x203/zipf,batched:3x70x77x203"
    out = "--benchmark_out=record.json"
    done = run(*QUICK[:3], QUICK[4], files, shapes, out, cwd=tmp_path)
    assert done.stdout.count("SKIPPED: takes no groups") == 1
    assert done.stdout.count("SKIPPED: takes no batch") == 1
    found = [
        row["gemm"] for row in json.loads((tmp_path / "record.json").read_text())["benchmarks"]
    ]
    for row in found:
        if row["kernel"] == "grouped":
            assert row["verification"]["passed"], row["failed"]
        elif row["kernel"] == "skips":
            assert "were never written" in row["failed"]


def test_the_example_for_a_transposed_a_is_right_on_one(tmp_path: Path) -> None:
    arguments = ["--gemm_layouts=tn", "--benchmark_filter=transposed_a"]
    assert (
        verified("f32", "512,131x77x203", tmp_path, *arguments)
        == ["course_report.transposed_a"] * 2
    )
