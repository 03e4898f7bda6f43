"""The shell of every page: one file with its style and its script, which asks no network.

A page is made of `markup` (elements), `table` (tables that sort and filter) and `document`, which
puts page.css and page.js into it. They know these classes:

- `js-only`: hidden where there is no JavaScript, and on paper
- `quiet`: smaller and paler text; `wide`: scrolls sideways if it must, named by `data-name`
- `answer`: the sentence that a page is there for; `chips`: a `nav` of counts, each a link
- `facts`, `glossary`: a `dl` of short facts, or of terms; `contents`: a `nav` with sections
- `badge`, with `warn` or `bad`: a word that marks a row
- `tabs`: buttons, each of which shows one `panel`
- `figure`: an SVG with its caption; see `picture.inline`
"""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files

from gemm_report.pages.markup import Html, html, joined, tag


def chip(name: str, count: int, key: str, tone: str | None) -> Html:
    """A count that filters the table's column `key` by `name`; no link where nothing is counted."""
    said = tag("strong", str(count)), f" {name}"
    return tag("a", *said, href=f"#{key}={name}", class_=tone) if count else tag("span", *said)


def definitions(facts: Iterable[tuple[str, str | None]], kind: str | None = None) -> Html:
    """Names with what is said of each, if anything is; `kind` is a class."""
    told = (tag("div", tag("dt", name), tag("dd", said)) for name, said in facts if said)
    return tag("dl", *told, class_=kind)


def document(title: str, body: str) -> str:
    """The whole page. `body` is markup (`Html`); a plain text is shown as it is."""
    folder = files("gemm_report.pages")
    style, script = ((folder / name).read_text("utf-8") for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The browser itself refuses what the page must not do: load anything, or run another script.
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    head = joined(
        [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            # Without one a browser would ask the server for it.
            tag("link", rel="icon", href="data:,"),
            tag("title", title),
            tag("style", Html(style)),
            tag("script", Html(script)),
        ],
        "\n",
    )
    skip = tag("a", "Skip to the content", href="#main", class_="skip")
    main = tag("main", html(body), id="main", tabindex=-1)
    page = tag("html", tag("head", head), tag("body", skip, main), lang="en")
    return f"<!doctype html>\n{page}\n"
