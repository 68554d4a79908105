"""Formulas of the pages, which are Unicode text, as TeX.

What is written on one line stays on one line: a fraction keeps its slash, and every bracket stays,
so the typeset formula says what the text says. Only scripts, accents, roots and names change.

    >>> tex("k_l = Σ_n v_n / (z_l − w_n)")
    'k_{l} = \\\\sum_{n} v_{n} / (z_{l} - w_{n})'
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

SYMBOLS = {
    "Σ": r"\sum ", "∏": r"\prod ", "∫": r"\int ", "−": "-", "·": r"\cdot ", "⋅": r"\cdot ",
    "⋯": r"\cdots ", "…": r"\dots ", "\N{ASTERISK OPERATOR}": "*", "*": "{}^*", "≤": r"\le ",
    "≥": r"\ge ", "≈": r"\approx ", "←": r"\leftarrow ", "→": r"\to ", "∞": r"\infty ",
    "∂": r"\partial ", "∘": r"\circ ", "×": r"\times ", "±": r"\pm ", "⌈": r"\lceil ",
    "⌉": r"\rceil ", "‖": r"\| ", "⟨": r"\langle ", "⟩": r"\rangle ", "½": r"\tfrac12 ",
    "¼": r"\tfrac14 ", "≠": r"\ne ", "∈": r"\in ", "⊙": r"\odot ", "~": r"\sim ",
    "\N{SCRIPT SMALL L}": r"\ell ", "%": r"\%", "&": r"\&", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "\N{TILDE OPERATOR}": r"\sim ", "≡": r"\equiv ",
}  # fmt: skip
GREEK = dict(
    re.findall(
        r"(\S) (\w+)",
        "α alpha β beta γ gamma δ delta ε varepsilon ζ zeta η eta θ theta κ kappa λ lambda "
        "μ mu ν nu ξ xi π pi ρ rho σ sigma τ tau φ varphi χ chi ψ psi ω omega "
        "Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Φ Phi Ψ Psi Ω Omega",
    )
)
ACCENTS = {"\u0304": "bar", "\u0303": "tilde", "\u0302": "hat", "\u0307": "dot"}
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱʲᵏᵀᴴᵖᵈ", "0123456789+-()nijkTHpd", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₙᵢⱼₖₗᵣ", "0123456789+-nijklr", strict=True))
PRIMES = "'\N{PRIME}"
LONG = 48  # characters
RELATIONS = "=≤≥≈←<>≡"
FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        "Re Im log log2 exp sin cos tan tanh cot atan2 max min diag conj tril softplus silu clip "
        "cumsum cumprod tr GELU rank",
    )
)
# names of several letters that are one number: a differential, a size of rounding
NAME = re.compile(r"(d{1,3}[A-Za-z]\d?|d?log|dnum|num|da|err|K[01]|eps|dt)(?![A-Za-z])")
ENGLISH = frozenset(re.findall(r"\w+", "of in so to is by as an at or no if it on"))
# what a mark without a bracket raises or lowers: letters and digits, two of them with a comma
SCRIPT = re.compile(r"[-−]?[A-Za-z0-9α-ω∞½]+(?:,[A-Za-z0-9]+)?|.")
WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9]*|\d+(?:\.\d+)?(?:e[-−]?\d+)?|\s+|.", re.DOTALL)

# what stands in programs, in what they print, and in sentences
FOREIGN = re.compile(
    r"""^\s*[$>]|["#`@]|//|\.\w+\(|\b(FAIL|import|def|return|torch)\b|\w: |[a-z]{3}-[a-z]{3}""",
    re.MULTILINE,
)


def tex(text: str) -> str:
    """One line of a formula as TeX."""
    return _Reader(unicodedata.normalize("NFD", text)).all()


def display(block: str) -> str:
    """A block of one or more lines as TeX, aligned at the first relation of each line.

    A long line with several equations far apart becomes a line for each of them.
    """
    lines = [row for line in block.splitlines() if line.strip() for row in _rows(line.strip())]
    if len(lines) == 1:
        return tex(lines[0])
    return "\\begin{aligned}\n" + " \\\\\n".join(map(_aligned, lines)) + "\n\\end{aligned}"


def _rows(line: str) -> list[str]:
    """The equations of a long line, which stand two spaces or more apart after a comma."""
    if len(line) <= LONG:
        return [line]
    parts = re.split(r"(?<=[,;.])\s{2,}(?=[^,;]*[=≤≥≈←])", line)
    return [part.strip() for part in parts]


def _aligned(line: str) -> str:
    """A line with one `&`, before its first relation outside of brackets."""
    depth, text = 0, line.strip()
    for place, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char in RELATIONS and not depth:
            return f"{tex(text[:place].rstrip())} & {tex(text[place:])}"
    return f"& \\quad {tex(text)}"


def is_formula(block: str) -> bool:
    """Whether a block of text is mathematics: no program, no output, few words.

    >>> is_formula("x_k = a_k x_{k-1} + b_k"), is_formula("x = run(y)  # fast")
    (True, False)
    """
    foreign = FOREIGN.search(block)
    if foreign or not re.search(r"[=≤≥←]", block):
        return False
    if not re.search(r"[^\x00-\x7f]|_\{|_[a-z]\b|\^|\w'", block):
        return False
    numbers = len(re.findall(r"\d\.\d", block))
    words = [w for w in re.findall(r"[A-Za-z]{4,}", block) if w not in FUNCTIONS]
    return numbers <= 2 and len(words) <= 4 * len(block.splitlines()) and "NaN" not in block


class _Reader:
    """Reads a formula from left to right: atoms with their scripts, symbols, words, spaces."""

    def __init__(self, text: str):
        self.text, self.at = text, 0

    def all(self) -> str:
        """The whole text."""
        return re.sub(r" +", " ", "".join(self._parts())).strip()

    def _parts(self) -> Iterator[str]:
        before = ""
        while self.at < len(self.text):
            (found,) = (TOKEN.match(self.text, self.at),)
            assert found
            token = found[0]
            if token.isspace():
                self.at = found.end()
                yield _space(token, before, self.text[self.at : self.at + 1])
                continue
            before = token
            yield self._atom()

    def _atom(self) -> str:
        """A symbol or a name with accents, primes and scripts."""
        base = self._base()
        primes = self._while(PRIMES)
        if primes:
            base = "{" + base + "'" * len(primes) + "}"
        below, above = [], []
        while (kind := self._script_kind()) is not None:
            (below if kind == "_" else above).append(self._script(kind))
        above += [r"\prime"] * len(self._while(PRIMES)) if below or above else []
        scripts = "".join(f"_{{{','.join(below)}}}" for _ in [0] if below)
        return base + scripts + "".join(f"^{{{' '.join(above)}}}" for _ in [0] if above)

    def _base(self) -> str:
        found = TOKEN.match(self.text, self.at)
        assert found
        token, self.at = found[0], found.end()
        if WORD.fullmatch(token):
            return self._name(token)
        if token == "√":
            return self._root()
        accents = self._while("".join(ACCENTS))
        shown = f"\\{GREEK[token]} " if token in GREEK else SYMBOLS.get(token, token)
        for accent in accents:
            shown = f"\\{ACCENTS[accent]}{{{shown.strip()}}}"
        return self._lone_script(token) or shown

    def _name(self, token: str) -> str:
        """A word: a letter, a function, a name of several letters, or English."""
        head = re.match(
            r"(d?log|markov|dt)_([a-z]+)(?=_|[^\w]|$)", self.text[self.at - len(token) :]
        )
        if (
            head
            and token in ("log", "dlog", "markov", "dt")
            and (token in ("log", "dlog") or len(head[2]) > 2)
        ):
            self.at += len(head[0]) - len(token)
            return _upright(head[0])
        accents = self._while("".join(ACCENTS))
        if len(token) == 1 or accents:
            *front, last = token
            for accent in accents:
                last = f"\\{ACCENTS[accent]}{{{last}}}"
            return "".join(front) + last
        if token in FUNCTIONS:
            return f"\\operatorname{{{token}}}"
        if NAME.fullmatch(token):
            return f"\\mathit{{{token}}}"
        if re.fullmatch(r"[A-Za-z]\d", token):  # S0, x0: one name
            return f"\\mathit{{{token}}}"
        if len(token) == 2 and token not in ENGLISH:  # indices: 2πib
            return token
        return f"\\text{{{token}}}"

    def _root(self) -> str:
        """√(…) with a bar over the bracket, √2 over the number; anything else has a mere sign."""
        if self.text.startswith("(", self.at):
            return f"\\sqrt{{{tex(self._bracket())}}}"
        number = re.compile(r"\d+").match(self.text, self.at)
        if number:
            self.at = number.end()
            return f"\\sqrt{{{number[0]}}}"
        return r"\surd "

    def _lone_script(self, token: str) -> str:
        """A raised or lowered sign that stands alone, as TeX wants it."""
        for table, mark in ((RAISED, "^"), (LOWERED, "_")):
            if token in table:
                more = (table[char] for char in self._while("".join(table)))
                return f"{mark}{{{''.join([table[token], *more])}}}"
        return ""

    def _script_kind(self) -> str | None:
        rest = self.text[self.at : self.at + 2]
        if not rest:
            return None
        if rest[0] in RAISED or (rest[0] == "^" and len(rest) > 1):
            return "^"
        if rest[0] in LOWERED or (rest[0] == "_" and len(rest) > 1 and not rest[1].isspace()):
            return "_"
        if rest[0] == "*" and self.at and not self.text[self.at - 1].isspace():
            return "^"  # a conjugate
        return None

    def _script(self, kind: str) -> str:
        """What is raised or lowered, without its mark and without the bracket around it."""
        table = RAISED if kind == "^" else LOWERED
        char = self.text[self.at]
        if char in table:
            return "".join(table[c] for c in self._while("".join(table)))
        self.at += 1
        if char == "*":
            return "*"
        if self.text[self.at] in "{(":
            return tex(self._bracket())
        if self.text[self.at] == "[":
            return f"[{tex(self._bracket())}]"
        rest = SCRIPT.match(self.text, self.at)
        assert rest
        self.at = rest.end()
        return _letters(rest[0])

    def _bracket(self) -> str:
        """The inside of the bracket that opens here."""
        depth, start = 0, self.at
        for place in range(start, len(self.text)):
            depth += (self.text[place] in "({[") - (self.text[place] in ")}]")
            if not depth:
                self.at = place + 1
                return self.text[start + 1 : place]
        raise ValueError(f"a bracket does not close: {self.text}")

    def _while(self, chars: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in chars:
            self.at += 1
        return self.text[start : self.at]


def _letters(text: str) -> str:
    """A script without brackets: indices `ij` are letters, `end` and `last,j` have a word."""
    if re.fullmatch(r"[A-Za-z]{3,}(,\w+)?", text):
        word, comma, rest = text.partition(",")
        return f"\\text{{{word}}}{comma}{rest}"
    return tex(" ".join(text) if re.fullmatch(r"[a-zA-Z]+", text) else text).replace(r"\,", "")


def _upright(name: str) -> str:
    return "\\mathrm{" + name.replace("_", r"\_") + "}"


def _space(space: str, before: str, after: str) -> str:
    """A space between factors is thin; columns are far apart; words keep theirs."""
    if len(space) > 1 and before:
        return r" \qquad "
    word = (
        len(before) > 1 and before.isalpha() and not (before in FUNCTIONS or NAME.fullmatch(before))
    )
    if word or before in (",", ";", ":"):
        return r"\ "
    factor = before and (before[-1].isalnum() or before[-1] in ")]}|‖*'√")
    return r"\," if factor and (after.isalnum() or after in "([|‖√Σ∫∂") else " "
