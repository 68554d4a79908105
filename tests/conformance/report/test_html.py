"""`refssm verify --html`: contents and escaping of the page; it loads nothing external."""

import html as escaping
import json
import re
from contextlib import redirect_stdout
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import LATE, SCAN, plugin, run

from refssm.command import code
from refssm.command import written as command

pytest.importorskip("jinja2", reason="the page is made by jinja2")
pytest.importorskip("matplotlib", reason="its pictures are drawn by matplotlib")

from refssm.conformance.report.page import page
from refssm.conformance.report.verdict import verdict_of

VOID = {"meta", "img", "br", "hr", "input", "link", "base", "wbr"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Read(HTMLParser):
    """Parsed elements with their attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")
        if tag not in VOID and not (self.get_starttag_text() or "").endswith("/>"):
            self._open.append((tag, len(self.texts) - 1))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_endtag(self, tag):
        assert self._open, tag
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        for _, i in self._open:
            self.texts[i] += data

    def of(self, tag, **attributes):
        """Attributes and text of the elements of one kind."""
        pairs = zip(self.elements, self.texts, strict=True)
        return [
            (a, text)
            for (name, a), text in pairs
            if name == tag and all(a.get(k.strip("_")) == v for k, v in attributes.items())
        ]


def made(capfd, *arguments, file="report.html"):
    """The page of one run: parsed, as text, exit code, output."""
    result, out, _ = run(capfd, "verify", *arguments, "--html", file)
    with open(file, encoding="utf-8") as stream:
        text = stream.read()
    return Read(text), text, result, out


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """A run that fails in value and NaN and passes a law: the page as text, and the JSON."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out:
        patch.chdir(tmp_path_factory.mktemp("failing"))
        Path("my_ops.py").write_text(LATE, encoding="utf-8")
        checks = ("--check", "value", "--check", "nan", "--check", "causal", "--dtype", "float32")
        assert code(["verify", "my_ops.py", *checks, "--json", "--html", "report.html"]) == 1
        return Path("report.html").read_text("utf-8"), json.loads(out.getvalue())["results"]


def rows(read):
    """Rows of the table that have a verdict."""
    return [a for a, _ in read.of("tr") if "data-verdict" in a]


@pytest.mark.long
def test_a_failure_is_told_with_its_hint_its_case_and_the_way_to_see_it_again(failing):
    text, told = failing
    read, failures = Read(text), [r for r in told if r["verdict"] != "pass"]
    assert [r["check"] for r in failures] == ["value", "nan"]
    articles = [text for _, text in read.of("article")]
    for r, article in zip(failures, articles, strict=True):
        assert escaping.escape(r["message"]) in text
        assert r["message"] in article
        assert r["hint"] in article
        assert r["smallest"] in article
        assert r["counterexample"] in article
        assert f"refssm replay {r['counterexample']} my_ops.py" in article
        assert f"{r['operator']}/{r['check']}[{r['dtype']}]" in article
    assert f"{told[0]['ratio']:.2g} (allowed 16)" in articles[0]
    assert "profile default, seed 0" in text
    assert f"numpy {np.__version__}" in text
    assert "0.0 throughout" in articles[0]  # how its arguments were made
    assert "float32, shape (b = 1, l = 65, n = 1)" in articles[0]


@pytest.mark.long
def test_what_a_pass_does_not_promise_stands_beside_it(folder, capfd):
    plugin(folder, SCAN)
    read, text, result, out = made(capfd, "my_ops.py", "--check", "value", "--dtype", "float32")
    assert result == 0
    assert [text for _, text in read.of("article")] == []
    (said,) = [text for _, text in read.of("td", class_="said")]
    line = next(x for x in out.splitlines() if x.startswith("not tested"))
    assert said.partition(": ")[2] == line.partition(": ")[2] != ""
    assert out.splitlines()[-1] == "page written: report.html"
    assert "<strong>PASS: linear_scan (my_ops.py): grade A, at least " in text


INACCURATE = """

def linear_step(a, b, x):
    return (a * x + b) * np.float32(1 + 2**-17)
"""


@pytest.mark.long
def test_failures_come_first(folder, capfd):
    (folder / "my_ops.py").write_text(LATE + INACCURATE, encoding="utf-8")
    checks = ("--check", "causal", "--check", "value", "--dtype", "float32")
    read, *_ = made(capfd, "my_ops.py", *checks)
    assert [a["data-verdict"] for a in rows(read)] == ["wrong", "inaccurate", "pass"]


HOSTILE = (
    "<img src=x onerror=alert(1)> </pre></td><script>alert(2)</script> \"' onload='x' {{ 7*7 }}"
)


def test_names_paths_and_messages_of_other_people_stay_text(folder, capfd):
    inner = folder / "<script>alert(1)<"
    inner.mkdir()
    name = "<script>alert(1)</script>.py"
    (folder / name).write_text(
        f"def linear_scan(a, b):\n    raise ValueError({HOSTILE!r})\n", encoding="utf-8"
    )
    read, text, result, _ = made(capfd, name, "--profile", "quick", "--check", "value")
    assert result == 1
    tags = [tag for tag, _ in read.elements]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert not any(a.startswith("on") for _, attributes in read.elements for a in attributes)
    assert escaping.escape(HOSTILE, quote=False).split(" ")[0] in text
    article = read.of("article")[0][1]
    assert " ".join(HOSTILE.split()) in " ".join(article.split())
    assert name in article


def test_the_parser_of_these_tests_sees_an_injection():
    read = Read("<p>a<script>x</script><img src=x onerror=y></p>")
    assert [tag for tag, _ in read.elements] == ["p", "script", "img"]
    assert "onerror" in read.elements[2][1]


@pytest.mark.long
def test_the_page_asks_nothing_of_the_outside(failing):
    text, _ = failing
    read = Read(text)
    assert "http" not in text.replace('http-equiv="', "")  # no address at all, not even SVG's
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []
    assert not {"link", "img", "iframe", "object", "base", "form"} & {t for t, _ in read.elements}
    for _, attributes in read.elements:
        assert "src" not in attributes
        link = attributes.get("href") or "#"
        assert link.startswith(("#", "data:image/png;base64,"))
    policy = next(a["content"] for a, _ in read.of("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    assert "unsafe-inline" not in policy.split("script-src")[1]


@pytest.mark.long
def test_links_and_references_lead_to_ids_that_stand_once(failing):
    text, _ = failing
    read = Read(text)
    ids = [a["id"] for _, a in read.elements if "id" in a]
    assert len(ids) == len({*ids})
    wanted = {a["href"][1:] for _, a in read.elements if a.get("href", "").startswith("#")}
    wanted |= {*re.findall(r"url\(#([^)]+)\)", text)}
    wanted |= {a["aria-labelledby"] for _, a in read.elements if "aria-labelledby" in a}
    assert wanted
    assert wanted <= {*ids}


@pytest.mark.long
def test_the_page_can_be_read_without_seeing_it(failing):
    read = Read(failing[0])
    assert read.elements[0] == ("html", {"lang": "en"})
    assert all(a.get("scope") in ("col", "row") for a, _ in read.of("th"))
    assert [text for a, text in read.of("th") if a["scope"] == "row"] == ["linear_scan"] * 3
    pictures = [a for a, _ in read.of("div", role="img")]
    assert len(pictures) == len(read.of("svg"))
    assert "places along l are above the allowed ratio" in pictures[0]["aria-label"]
    words = [text for a, text in read.of("span") if a.get("class", "").startswith("verdict ")]
    assert {*words} <= {"wrong", "inaccurate", "pass", "skipped", "error"}


@pytest.mark.long
def test_the_same_run_gives_the_same_page_but_for_the_times(folder, capfd):
    plugin(folder, LATE)
    quick = ("--profile", "quick", "--check", "value")  # no shrinking, because a time limit ends it
    texts = [made(capfd, "my_ops.py", *quick, file=f"{name}.html")[1] for name in ("one", "two")]
    timeless = [re.sub(r"<time.*?</time>", "", text) for text in texts]
    assert timeless[0] == timeless[1]
    assert "<time" in texts[0]


def test_json_holds_no_pictures(failing):
    assert all("evidence" not in record for record in failing[1])


def test_the_page_begins_with_the_verdict_and_wrong_comes_before_inaccurate(folder):
    from refssm.conformance.judging.result import Result

    told = {"message": "worst x[0]: got 1, want 2 ± 1.0e-07", "digits": 24, "ratio": 3e33}
    inaccurate = Result("linear_scan", "m", "value", "float32", "inaccurate", "C", **told)
    wrong = Result("linear_scan", "m", "nan", "float32", "wrong", "F", **told)
    results = [inaccurate, wrong]
    text = page(verdict_of(results), results, ["m   profile default"], 1.0, {})
    read = Read(text)
    assert [a["data-verdict"] for a in rows(read)] == ["wrong", "inaccurate"]
    assert text.index("WRONG: linear_scan (m): ") < text.index("Results") < text.index("The run")
    assert ">3e+33" not in text


@pytest.mark.long
def test_a_run_of_a_thousand_rows_is_one_page(folder):
    from refssm.conformance.judging.result import Result

    passes = [Result("linear_scan", f"m{i}", "value", "float32", "pass", "A") for i in range(950)]
    error: dict[str, Any] = {
        "grade": "-",
        "message": "raised ValueError",
        "looks_like": "B̄ = dt·B <Euler>",
    }
    failures = [Result("linear_scan", "m", "value", "float32", "error", **error) for _ in range(50)]
    results = [*passes, *failures]
    shown = command._shown(results)
    read = Read(page(verdict_of(results), results, ["m   profile default, seed 0"], 1.0, shown))
    assert len(rows(read)) == 1000
    assert [a["data-verdict"] for a in rows(read)][:50] == ["error"] * 50
    assert [text for _, text in read.of("th", scope="row")][-1] == "linear_scan m949"
    assert "Looks like" in read.of("article")[0][1]
    assert "B̄ = dt·B <Euler>" in read.of("article")[0][1]
    without = [text for _, text in read.of("p", class_="without")]
    assert without[0] == "No picture: the function was not called."
    assert without[-1].startswith("No picture: only the first 40 failures have one")


def test_the_authors_own_arrays_are_shown_too(folder, capfd):
    plugin(folder, LATE)
    a, b = np.full((2, 1, 70, 1), 0.5, np.float32)
    np.savez(folder / "batch.npz", a=a, b=b)
    read, _, result, _ = made(capfd, "my_ops.py", "--inputs", "batch.npz")
    ((_, article),) = read.of("article")
    assert result == 1
    assert "inputs: batch.npz" in article
    assert "1 of 70 places along l are above the allowed ratio, the first at l = 64" in article
    assert "0.5 throughout" in article


@pytest.mark.long
def test_the_header_says_once_what_all_targets_share(folder, capfd):
    for name in ("one.py", "two.py"):
        plugin(folder, SCAN, name)
    read, text, *_ = made(capfd, "one.py", "two.py", "--check", "zero")
    assert text.count("scipy ") == 1
    assert [t for _, t in read.of("li")] == [
        f"{name}.py · profile default, seed 0" for name in ("one", "two")
    ]
    assert [text for _, text in read.of("th", scope="row")] == [
        "linear_scan one.py",
        "linear_scan two.py",
    ]
