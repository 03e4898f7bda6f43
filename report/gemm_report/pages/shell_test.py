import base64
import hashlib
import re

from gemm_report.pages.markup import Html, tag
from gemm_report.pages.shell import document


def test_a_page_is_one_file_that_loads_nothing() -> None:
    page = document("title", tag("p", "body"))
    assert page.startswith("<!doctype html>\n<html")
    assert not re.findall(r"(?:src|href)=\"(?!data:,|#)", page)
    assert not re.findall(r"https?:|@import|url\(", page)
    assert "<p>body</p>" in page


def test_the_browser_is_told_to_run_this_script_alone() -> None:
    page = document("title", "")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#x27;sha256-{digest}&#x27;" in page
    assert "default-src &#x27;none&#x27;" in page


def test_title_and_plain_text_are_text() -> None:
    page = document("</title><b>", "</main><b>")
    assert "<title>&lt;/title&gt;&lt;b&gt;</title>" in page
    assert ">&lt;/main&gt;&lt;b&gt;</main>" in page
    assert "><b></b></main>" in document("", Html("<b></b>"))
