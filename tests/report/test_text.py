from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.report.render import MAX_CHARS, prose

TAGS = {
    *("div", "p", "br", "hr", "ul", "ol", "li", "pre", "code", "strong", "em", "span", "blockquote"),
    *("h3", "h4", "h5", "h6"),
}


def body(text: str) -> str:
    shown = str(prose(text)).removeprefix('<div class="prose">').removesuffix("</div>")
    return shown.replace("\n<", "<").rstrip("\n")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("one\ntwo\n\nthree", "<p>one<br>\ntwo</p><p>three</p>"),
        ("a*b*c 2 * 3 * 4 snake_case_name", "<p>a*b*c 2 * 3 * 4 snake_case_name</p>"),
        ("- a\n- b\n  - c", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
        ("3. x\n4. y", '<ol start="3"><li>x</li><li>y</li></ol>'),
        ("> ~~~$x$ onclick=1\n> a", "<blockquote><pre><code>a</code></pre></blockquote>"),
        ("It costs $5 and then $6, a $ sign.", "<p>It costs $5 and then $6, a $ sign.</p>"),
        (r"\$x\$", "<p>$x$</p>"),
        ("`$x$`", "<p><code>$x$</code></p>"),
        ("[see](https://x.test/a)", "<p>[see](https://x.test/a)</p>"),
        ("![pic](https://x.test/b.png)", "<p>![pic](https://x.test/b.png)</p>"),
        ("a \ue0000\ue001 b $x$", '<p>a 0 b <span class="math">x</span></p>'),
    ],
    ids=["breaks", "stars", "nested", "numbers", "fence", "money", "escaped", "code", "links", "images", "our own"],
)
def test_a_text_becomes_just_this_markup(text, html):
    assert body(text) == html


@pytest.mark.parametrize(
    ("text", "tex", "display"),
    [
        ("so $x_1*y*z$ holds", "x_1*y*z", ""),
        (r"so \(x\) holds", "x", ""),
        ("$$\n- a\n+ b\n$$", "- a\n+ b", " display"),
        (r"\[ x \]", "x", " display"),
        ("\\begin{align*}\na&=b\n\\end{align*}", "\\begin{align*}\na&amp;=b\n\\end{align*}", " display"),
        (r"the answer is \boxed{\frac{1}{2}}", r"\boxed{\frac{1}{2}}", ""),
    ],
)
def test_maths_is_left_for_the_browser(text, tex, display):
    assert f'<span class="math{display}">{tex}</span>' in prose(text)


def test_maths_hides_code():
    assert "`" in body("$a`b`$")


def test_markup_in_a_text_is_text():
    shown = prose("<script>alert(1)</script> <img src=x onerror=alert(1)> **<b>**")
    assert "<script" not in shown and "<img" not in shown and "<b>" not in shown


def test_a_very_long_text_is_shown_as_it_is():
    assert prose("**a**" * MAX_CHARS).startswith('<pre class="code long">**a**')


PIECES = st.sampled_from(
    (
        *"`$*_[]()<>!#-+\\{}\n \t1a",
        *("```", "~~~", "$$", r"\[", r"\]", r"\(", "\\begin{align}", "\\end{align}", "**", "- ", "\\boxed{", "> "),
        *("![", "](", "http://x", "<script>", "\ue000", "0", "\ue001", "&amp;", '"', "1. ", "    "),
    )
)


@given(st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=200))
def test_whatever_is_written_becomes_balanced_harmless_markup(text):
    shown = prose(text)
    opened: list[str] = []
    for close, name in re.findall(r"<(/?)([a-z0-9]+)[^<>]*>", shown):
        assert name in TAGS
        if close:
            assert opened.pop() == name
        elif name not in {"br", "hr"}:
            opened.append(name)
    assert not opened
    assert set(re.findall(r" ([a-z-]+)=\"", re.sub(r">[^<]*<", "><", shown))) <= {*("class", "start")}


@pytest.mark.parametrize(
    "piece", ["$", "$a", "**a ", "*a ", "_a ", "`", "``", "[a](", "[", "![", "\\(", "\\[", "\\begin{align}", "- ", "> "]
)
@pytest.mark.timeout(20)  # far above what it takes; anything that grows with the square takes minutes
def test_no_text_takes_long(piece):
    assert prose(piece * (100_000 // len(piece)))
