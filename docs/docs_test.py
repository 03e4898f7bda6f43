"""README and docs: links, commands and their options, and words that are not used."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from own_files import own_files

ROOT = Path(__file__).parents[1]
GEMM_BENCH = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "gemm_bench"
PAGES = own_files("*.md", "docs/**/*.md", "kernels/**/*.md", "results/*.md")
# What the field does not say -> what it says. Patterns are matched in whole words, in any case.
REFUSED = {
    "cards?": "GPU, device",
    "(?:in|take|takes|took) turns": "interleaved, rotated",
    "asked of the": "traffic of",
    "rivals?": "baseline",
    '(?<!")peers?(?!"| cop| access)': "other implementations",
    "held against|hold against|holds against": "compared with",
    "held down": "throttled",
    "binds|what binds": "limits, bottleneck",
    "hangs? together": "autocorrelated",
    "gives? up|given up": "times out",
    "departs?|departing": "deviates",
    "laid|lying": "packed, stored",
    "turned": "transposed",
    "by model": "modelled",
    "the house": "the layout",
    "anew": "again",
    "(?-i:cublasLt)": "cuBLASLt",
}
WORDS = re.compile("|".join(rf"\b(?:{words})\b" for words in REFUSED), re.IGNORECASE)
# Generated from stored records, whose texts stay as they were.
GENERATED = re.compile(r"<!-- gemm_report:begin.*?gemm_report:end [^>]*-->", re.DOTALL)
TEXTS = [
    path
    for path in own_files("*", "**/*")
    if path.suffix in {"", ".md", ".py", ".cpp", ".hpp", ".cu", ".cuh", ".h", ".js", ".css", ".yml"}
    and path.name not in {"docs_test.py", "LICENSE"}
    and not {"results", "testdata"} & set(path.relative_to(ROOT).parts[:-1])
]


def refused(text: str, code: bool) -> list[str]:
    """Words of `text` that are in REFUSED, identifiers of code apart."""
    found = [match[0] for match in WORDS.finditer(GENERATED.sub("", text))]
    return [one for one in found if not (code and one == "cublasLt")]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_words_are_those_of_the_field(path: Path) -> None:
    found = refused(path.read_text(encoding="utf-8"), code=path.suffix != ".md")
    assert not found, f"say instead: {REFUSED}"


def test_a_refused_word_is_found() -> None:
    assert refused("The card is timed in turns", code=False) == ["card", "in turns"]
    assert refused("cublasLt cuBLASLt", code=False) == ["cublasLt"]
    assert refused("discarded, cublasLtMatmul, cublasLt", code=True) == []


def heading_anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = [heading_anchor(line) for line in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return set(headings) | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        place, _, anchor = link.partition("#")
        if "://" in place:
            continue
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert not lost


def commands(page: Path) -> Iterator[list[str]]:
    """The lines of shell blocks that run something of ours, split into words."""
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for line in block.splitlines():
            for part in re.split(r"&&|\|\||;", line.partition(" #")[0]):
                words = shlex.split(part)
                if words and re.match(r"tools/|build/release/|\./gemm_bench", words[0]):
                    yield words


@cache
def help_of(*command: str) -> str:
    return subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_options_exist(page: Path) -> None:
    for words in commands(page):
        name = Path(words[0]).name
        if name == "gemm_bench":
            if not GEMM_BENCH.exists():
                pytest.skip("gemm_bench is not built")
            text = help_of(str(GEMM_BENCH))
        else:
            assert (ROOT / words[0]).is_file(), words
            text = help_of(str(ROOT / words[0]), *words[1 : 2 if name == "report" else 1])
            if "gemm_bench" in text and GEMM_BENCH.exists():
                text += help_of(str(GEMM_BENCH))
            if name == "gate":
                text += help_of(str(ROOT / "tools/report"), "compare")
        for option in (word.partition("=")[0] for word in words[1:]):
            if option.startswith("-") and option not in ("--", "--help"):
                assert re.search(rf"(?<![\w-]){re.escape(option)}\b", text), (option, words)


def test_messages_of_troubleshooting_are_printed() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    symptoms = [row.split("|")[1] for row in page.splitlines() if row.startswith("| ")]
    messages = [said for one in symptoms for said in re.findall(r"`([^`]+)`", one)]
    messages = [said for said in messages if " " in said]
    assert len(messages) > 5
    printing = ("bench/**/*.cpp", "cmake/*.cmake", "tools/setup", "report/**/compare.py")
    printing += ("report/**/guideline.py",)
    sources = "".join(path.read_text("utf-8") for path in own_files(*printing))
    code = re.sub(r'"\s*"', "", sources).replace("%%", "%")  # a literal on several lines
    assert [said for said in messages if said not in code] == []


@pytest.mark.skipif(not GEMM_BENCH.exists(), reason="gemm_bench is not built")
def test_generated_parts_are_current() -> None:
    command = [sys.executable, ROOT / "docs" / "generate.py", "--check", GEMM_BENCH]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), "run docs/generate.py"
