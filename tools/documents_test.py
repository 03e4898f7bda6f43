"""Links of the documents lead somewhere, and the files of ours that they name exist."""

import re
from pathlib import Path

import pytest
from own_files import ROOT, own_files

FILES = own_files("**")
DOCUMENTS = own_files("CONTRIBUTING.md", "docs/*.md", "results/README.md")
# A file or a folder of the project, in backquotes: `bench/record/record.cpp`, `fixture.*`.
NAMED = re.compile(r"`((?:[\w*]+/)*[\w*]+\.(?:cpp|hpp|cu|cuh|py|inc|json|\*))`")


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)", document.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(document: Path) -> list[str]:
    """Links and names of files that lead nowhere."""
    text = document.read_text("utf-8")
    found = []
    for link in re.findall(r"\]\((?!\w+:)([^)]+)\)", text):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    named = NAMED.findall(text)
    return found + [name for name in named if not any(file.match(name) for file in FILES)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_files_exist(document: Path) -> None:
    assert broken(document) == []


def test_what_does_not_exist_is_found(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text("# A b\n[x](#a-b) [y](#c) [z](none.md) `record.cpp` `bench/none.cpp`\n")
    assert broken(document) == ["#c", "none.md", "bench/none.cpp"]
