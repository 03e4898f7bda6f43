import pytest

from gemm_report.pages.markup import Html, html, joined, tag, visible


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("td", "<b>", Html("<b>x</b>")) == "<td>&lt;b&gt;<b>x</b></td>"
    assert joined(["<", tag("br")], "&") == "&lt;&amp;<br>"


def test_text_added_to_markup_is_text() -> None:
    assert html(tag("b", "x") + "<i>") == "&lt;b&gt;x&lt;/b&gt;&lt;i&gt;"


def test_attributes_hold_any_text() -> None:
    made = tag("a", "x", href="\"'><script>", class_="n", data_value=1.5, aria_label=None)
    assert made == '<a href="&quot;&#x27;&gt;&lt;script&gt;" class="n" data-value="1.5">x</a>'
    assert tag("input", disabled=True, checked=False) == "<input disabled>"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\0b", "a␀b"),
        ("\x1b[31m", "␛[31m"),
        ("\x7f", "␡"),
        ("\x85", "\ufffd"),
        ("abc\u202edef", "abc\ufffddef"),
        ("\ud800", "\ufffd"),
        ("line\nline\t", "line\nline\t"),
        ("µ × ␛ é 漢", "µ × ␛ é 漢"),
    ],
)
def test_control_characters_are_seen(text: str, seen: str) -> None:
    assert visible(text) == seen
    assert html(text).encode("utf-8")
