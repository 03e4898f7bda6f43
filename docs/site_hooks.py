"""Hooks of MkDocs (mkdocs.yml): README is the first page of the site, and links from docs/ to other
files of the repository lead there."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r'(\]\(|src="|srcset="|href=")([^)"#\s:]+)')


def on_files(files: Any, config: Any) -> None:
    """Adds README.md as index.md."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=text))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with links that work in the site. What leads nowhere stays: MkDocs refuses it."""
    folder = ROOT if page.file.src_uri == "index.md" else ROOT / "docs"
    repository = f"{config.repo_url.rstrip('/')}/blob/HEAD" if config.repo_url else ROOT.as_uri()

    def led(match: re.Match[str]) -> str:
        path = (folder / match[2]).resolve()
        if path == ROOT / "README.md":
            return f"{match[1]}index.md"
        if path.is_relative_to(ROOT / "docs"):
            return f"{match[1]}{path.relative_to(ROOT / 'docs')}"
        if not path.exists() or not path.is_relative_to(ROOT):
            return match[0]
        raw = "?raw=true" if config.repo_url and path.suffix in {".png", ".svg"} else ""
        return f"{match[1]}{repository}/{path.relative_to(ROOT)}{raw}"

    return LINK.sub(led, markdown)
