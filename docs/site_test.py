import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="tools/setup test installs it")

ROOT = Path(__file__).parents[1]


def build(root: Path, page: str) -> tuple[int, str, str]:
    """The exit code, what MkDocs says, and the page, of a site with README and this page."""
    (root / "docs").mkdir(exist_ok=True)
    for name in ("mkdocs.yml", "docs/site_hooks.py"):
        shutil.copy(ROOT / name, root / name)
    (root / "README.md").write_text("[a page](docs/page.md)", encoding="utf-8")
    (root / "docs" / "page.md").write_text(page, encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", root / "site"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    built = root / "site" / "page" / "index.html"
    return done.returncode, done.stderr, built.read_text("utf-8") if built.exists() else ""


def test_links_lead_to_pages_and_to_the_repository(tmp_path: Path) -> None:
    code, said, page = build(tmp_path, "[home](../README.md) [config](../mkdocs.yml)")
    assert code == 0, said
    assert f'href="{(tmp_path / "mkdocs.yml").as_uri()}"' in page
    assert 'href=".."' in page


def test_a_dead_link_fails(tmp_path: Path) -> None:
    targets = ("missing.md", "page.md#missing", "../missing.cu")
    code, said, _ = build(tmp_path, " ".join(f"[x]({target})" for target in targets))
    assert code != 0
    for target in targets:
        assert target.removeprefix("page.md").removeprefix("../") in said
