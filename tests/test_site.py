"""The site that `make docs` builds, as far as it can be checked without Sphinx."""

import re
import shutil
from pathlib import Path

import pytest

from docs.build import front, picture_page
from docs.site import api, blocks, browse, contents, formulas, links, llms, pages
from refssm.catalog import OPERATORS, families

ROOT = Path(__file__).parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]
    if path != ROOT / "README.md"
}
BIB = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
KEYS = frozenset(re.findall(r"^@\w+\{(\w+),", BIB, re.MULTILINE))
short = pytest.mark.short


@short
def test_each_page_is_reached_from_a_door():
    assert contents.lost(PAGES) == []


@short
def test_a_page_that_no_door_leads_to_is_seen():
    assert contents.lost({**PAGES, "docs/alone.md": "# Alone"}) == ["docs/alone.md"]


@short
def test_a_page_of_a_folder_is_below_the_page_of_its_name_and_of_no_other():
    tree = contents.tree(PAGES)
    assert "docs/findings/s4.md" in tree["docs/findings.md"]
    assert "docs/layers/s5.md" in tree["docs/layers.md"]
    everywhere = [page for below in tree.values() for page in below]
    assert len(everywhere) == len({*everywhere})


@short
def test_each_citation_of_a_page_is_in_the_bibliography():
    def cited(page):
        parts = [b.text for b in blocks.blocks(page) if b.kind in ("text", "table")]
        found = []
        blocks.outside_code("\n\n".join(parts), lambda text: found.extend(_keys(text)) or text)
        return found

    def _keys(text):
        return [key for m in pages.CITED.finditer(text) for key in pages.KEY.findall(m[1])]

    unknown = {path: {*cited(text)} - KEYS for path, text in PAGES.items()}
    assert {path: keys for path, keys in unknown.items() if keys} == {}
    assert cited("of [nobody2024x, §3]") == ["nobody2024x"]
    assert sum(len(cited(text)) for text in PAGES.values()) > 150


@short
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sum [gu2022s4, §3.2].", r"sum \[{cite:alp}`gu2022s4`, §3.2\]."),
        ("[gu2022s4, §1; lu2023structured]",
         r"\[{cite:alp}`gu2022s4`, §1; {cite:alp}`lu2023structured`\]"),
        ("[gu2022s4d,\nsmith2023s5]", "\\[{cite:alp}`gu2022s4d`,\n{cite:alp}`smith2023s5`\\]"),
        ("[gu2022s4](judge.md)", "[gu2022s4](judge.md)"),
        ("[float32], [0, 1], [smith2023]", "[float32], [0, 1], [smith2023]"),
    ],
)  # fmt: skip
def test_a_citation_becomes_a_link_and_nothing_else_does(text, shown):
    assert pages.cited(text, KEYS) == shown


SITE = pages.Site(KEYS, lambda path: path.removeprefix("docs/"), {"linear_scan"})
PAGE = """# A `linear_scan`

The state [gu2022s4] of `linear_scan(a, b)` is `x_k = a_k x_{k-1} + b_k`; not `[gu2022s4]`,
not `x = f(a)`.

    x_k = a_k x_{k-1} + b_k

    >>> 1 + 1  # [gu2022s4]
    2

```
[gu2022s4](../other.md)
```

See [another](../operators/scan.md#one).
"""
STAGED = """# A `linear_scan`

The state \\[{cite:alp}`gu2022s4`\\] of {py:obj}`linear_scan(a, b) <refssm.linear_scan>` is \
{math}`x_{k} = a_{k}\\,x_{k-1} + b_{k}`; not `[gu2022s4]`,
not `x = f(a)`.

```{math}
x_{k} = a_{k}\\,x_{k-1} + b_{k}
```

```pycon
>>> 1 + 1  # [gu2022s4]
2
```

```
[gu2022s4](../other.md)
```

See [another](../operators/scan.md#one).
"""


@short
def test_a_page_for_sphinx_has_citations_formulas_and_links_and_its_code_is_left_alone():
    merged = PAGE.replace("b_k\n\n    >>>", "b_k\n\nand\n\n    >>>")
    wanted = STAGED.replace("```\n\n```pycon", "```\n\nand\n\n```pycon")
    made = pages.staged(merged, "docs/findings/a.md", SITE)
    assert re.sub(r"\n\n+", "\n\n", made) == wanted


@short
@pytest.mark.parametrize("path", sorted(PAGES))
def test_the_blocks_of_a_page_are_the_page(path):
    assert "\n".join(block.text for block in blocks.blocks(PAGES[path])) == PAGES[path]


TYPESET = {
    "k_l = Σ_n v_n / (z_l − w_n)": r"k_{l} = \sum _{n}\,v_{n} / (z_{l} - w_{n})",
    "Ā = (I − ½dt A)⁻¹": r"\bar{A} = (I - \tfrac12 \mathit{dt}\,A)^{-1}",
    "R_ln²": "R_{ln}^{2}",
    "z'_j^{−(i+1)}": "{z'}_{j}^{-(i+1)}",
    "x_i' = 1": r"x_{i}^{\prime} = 1",
    "v_j*": "v_{j}^{*}",
    "√(2i+1)/T": r"\sqrt{2i+1}/T",
    "√Γ(1−α)": r"\surd \Gamma (1-\alpha )",
    "e^{log_g_t}": r"e^{\mathrm{log\_g}_{t}}",
    "e^(−2πij/l)": r"e^{-2\pi ij/l}",
    "e^{G_end} S": r"e^{G_{\text{end}}}\,S",
    "Re conj(s_k)": r"\operatorname{Re}\,\operatorname{conj}(s_{k})",
    "y,   from rest": r"y, \qquad \text{from}\ \text{rest}",
}


@short
@pytest.mark.parametrize("text", TYPESET)
def test_a_formula_is_typeset_as_it_is_written(text):
    assert formulas.tex(text) == TYPESET[text]


def every_formula():
    """All blocks of pages that are typeset."""
    for text in PAGES.values():
        for block in blocks.blocks(text):
            code = re.sub("^    ", "", block.text, flags=re.MULTILINE)
            if block.kind == "indented" and formulas.is_formula(code):
                yield code


@short
def test_every_formula_of_the_pages_is_typeset_and_no_sign_is_lost():
    found = [*every_formula()]
    assert len(found) > 150
    for code in found:
        made = formulas.display(code)
        plain = re.sub(r"\\[{}]", "", made)
        assert plain.count("{") == plain.count("}"), code
        signs = re.findall(r"\d", re.sub(r"[½¼]", "12", code))
        assert len(signs) <= len(re.findall(r"\d", made)), code


@short
@pytest.mark.parametrize(
    "text", ["x = run(y)  # fast", "$ refssm list", "g = −88: outputs 1, 1", "[[0.1, 2.5]]"]
)
def test_programs_and_what_they_print_are_no_formulas(text):
    assert not formulas.is_formula(text)


@short
def test_the_gallery_shows_every_picture_and_is_what_make_tables_writes(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = PAGES["docs/pictures.md"]
    assert text == picture_page.page()  # make tables
    assert [p for p in picture_page.pictures() if f"]({p.relative_to('docs')})" not in text] == []
    for path in picture_page.pictures():
        made = picture_page.maker(path)
        assert (ROOT / made.code).is_file()
        assert (ROOT / "docs" / made.page).is_file()


@pytest.mark.long
def test_the_report_of_the_first_page_is_what_the_command_prints(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = PAGES["docs/index.md"]
    made = front.page(text, front.report())  # python -m docs.build.front
    assert front.timeless(made) == front.timeless(text)


@short
def test_the_readme_counts_operators_and_links_each_family():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{len(OPERATORS)} operators in {len(families())} families" in text
    linked = re.findall(r"\[(\w+)\]\(docs/operators/(\w+)\.md\)", text)
    assert sorted(name for name, _ in linked) == sorted(families())
    assert [name for name, page in linked if name != page] == []


@short
def test_llms_txt_has_a_sentence_for_each_page():
    text = llms.llms(PAGES, lambda path: path)
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    doors = 1 + len(contents.DOORS)
    assert len(lines) == len(PAGES) - doors
    assert [line for line in lines if not re.fullmatch(r"- \[.+\]\(\S+\): \S.+", line)] == []


DOCSTRING = """h_k = C A^k B: the answer to a pulse.

    h_k = Σ_n c_n a_n^k

Takes ``A`` and |z| < 1, `B` [gu2022s4].

>>> 1 + 1
2"""


@short
def test_a_docstring_has_its_formulas_its_words_and_its_examples():
    assert api.text(DOCSTRING, SITE).split("\n\n") == [
        "```{math}\nh_{k} = C\\,A^{k}\\,B\n```",
        "The answer to a pulse.",
        "```{math}\nh_{k} = \\sum _{n}\\,c_{n}\\,a_{n}^{k}\n```",
        "Takes `A` and |z| \\< 1, `B` \\[{cite:alp}`gu2022s4`\\].",
        "```pycon\n>>> 1 + 1\n2\n```",
    ]


@short
def test_every_public_function_has_its_place_on_one_page():
    found = [name for names in api.families().values() for name in names]
    assert sorted(found) == sorted(api.functions())
    assert len(found) == len({*found}) > 500


BUILT = """<!doctype html><html><head><link rel="stylesheet" href="{style}"></head>
<body><p id="here">text</p><a href="{link}">a link</a></body></html>"""


@short
@pytest.mark.parametrize(
    ("link", "style", "said"),
    [
        ("#here", "a.css", []),
        ("index.html#here", "a.css", []),
        ("https://example.org", "a.css", []),
        ("gone.html", "a.css", ["index.html: gone.html: no such file"]),
        ("#gone", "a.css", ["index.html: #gone: no such anchor"]),
        ("#here", "https://example.org/a.css",
         ["index.html: https://example.org/a.css: loaded from a network"]),
    ],
)  # fmt: skip
def test_a_broken_link_of_the_built_site_is_seen(tmp_path, link, style, said):
    (tmp_path / "a.css").write_text("", encoding="utf-8")
    page = tmp_path / "index.html"
    page.write_text(BUILT.format(link=link, style=style), encoding="utf-8")
    assert links.broken(tmp_path) == said


WIDE = """<!doctype html><html><body style="margin: 0"><div class="math">
<mjx-container style="display: block; width: 900px"><svg data-mml-node="merror"
data-mjx-error="Missing brace"></svg></mjx-container></div><img src="gone.png">
<script>window.MathJax = {startup: {promise: Promise.resolve()}}; gone();</script></body></html>"""


@pytest.mark.outside
def test_a_browser_sees_what_is_cut_off_or_wrong(tmp_path):
    browser = next(filter(None, map(shutil.which, browse.BROWSERS)), None)
    if browser is None:
        pytest.skip("no browser to open pages with")
    (tmp_path / "index.html").write_text(WIDE, encoding="utf-8")
    said = "\n".join(browse.browsed(tmp_path, browser))
    for words in ("at 400: clipped formula", "at 1200: formula: Missing brace",
                  "at 400: no picture", "pixels sideways", "gone is not defined"):  # fmt: skip
        assert words in said
    assert "at 1200: clipped" not in said
