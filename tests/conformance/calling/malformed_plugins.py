"""Plug-ins that cannot be judged, by kind: the file's text, and words of the error sentence."""

import os

from judging import SCAN

DEF = "def linear_scan(a, b):\n    return b\n"
ON_THREE = "from refssm.testing import implements\nimplements('linear_scan')(3)\n"
CALL = "def __call__(self, a, b): return b"


def declared(arguments, head=""):
    """A plug-in with a function marked with these arguments."""
    return f"from refssm.testing import Budget, implements\n{head}\n@implements({arguments})\n{DEF}"


def of_scan(more):
    """The same for linear_scan, with one more argument."""
    return declared(f"'linear_scan', {more}")


def object_with(lines):
    """A plug-in that is a callable object."""
    return f"class C:\n    {lines}\nlinear_scan = C()\n"


SYNTAX = {
    "an open bracket": "def linear_scan(a, b: return",
    "tabs and spaces": "def f():\n        if 1:\n\treturn b\n",
    "no indent": "def linear_scan(a, b):\nreturn b\n",
    "another indent": "if 1:\n        x = 1\n    y = 2\n",
    "a coding of no name": b"# -*- coding: nosuch -*-\n" + DEF.encode(),
    "a mark against its coding": b"\xef\xbb\xbf# -*- coding: latin-1 -*-\n" + DEF.encode(),
    "latin-1": "x = 'caf\xe9'\n".encode("latin-1"),
    "UTF-16": DEF.encode("utf-16"),
    "a zero": DEF.encode() + b"\0",
    "bytes": bytes(range(256)),
    "an ELF file": b"\x7fELF" + bytes(60),
    "return outside": "return 3\n",
    "yield outside": "yield 1\n",
    "a future too late": "x = 1\nfrom __future__ import annotations\n",
    "a future of no name": "from __future__ import braces\n",
    "an argument twice": "def linear_scan(a, a): pass\n",
    "a word of Python": "def lambda(a, b): pass\n",
    "an open string": "x = 'abc\n",
    "an open text": '"""abc\n',
    "an unknown letter": "x = '\\N{nosuch}'\n",
    "many brackets": "x = " + "(" * 3000 + ")" * 3000,
    "Python 2": "print 'x'\n",
    "a merge": "<<<<<<< HEAD\n" + DEF,
    "a long number": f"x = {'9' * 10000}\n",
    "a dash": "x = 1 \u2013 2\n",
    "curly quotes": "x = \u201ca\u201d\n",
    "a space of no width": "x = \u200b1\n",
    "assigning to a call": "f() = 3\n",
    "an f-string": "x = f'{'\n",
}
RAISED = {
    "a library that is absent": ("import nosuchlibrary\n", "No module named 'nosuchlibrary'"),
    "a name that is absent": ("from numpy import nosuch\n", "cannot import name 'nosuch'"),
    "relative": ("from . import x\n", "relative import with no known parent"),
    "relative and above": ("from ..x import y\n", "relative import with no known parent"),
    "itself": ("from my_ops import linear_scan\n", "cannot import name 'linear_scan'"),
    "an error": ("1 / 0\n", "raised ZeroDivisionError: division by zero (my_ops.py:1)"),
    "an error without words": ("assert False\n", "raised AssertionError (my_ops.py:1)"),
    "a long one": ("raise ValueError('x' * 100000)\n", "x… (my_ops.py:1)"),
    "one of lines": ("raise ValueError('a\\nb\\x1b[31m')\n", "ValueError: a b\\x1b[31m ("),
    "half a pair": ("raise ValueError('\\ud800')\n", "\\ud800"),
    "a syntax error of its own": ("raise SyntaxError('a\\n' * 9999)\n", "SyntaxError: a a"),
    "words that raise": (
        "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E\n",
        "raised E (my_ops.py:3)",
    ),
    "a name that raises": (
        "class M(type):\n    __name__ = property(lambda c: 1 / 0)\n"
        "class E(Exception, metaclass=M): pass\nraise E\n",
        "raised E (my_ops.py:4)",
    ),
    "many": ("raise BaseExceptionGroup('g', [KeyboardInterrupt()])\n", "BaseExceptionGroup: g"),
    "an exit": ("raise SystemExit('bye')\n", "raised SystemExit: bye (my_ops.py:1)"),
    "an exit of generators": ("raise GeneratorExit\n", "raised GeneratorExit (my_ops.py:1)"),
    "no common error": ("class B(BaseException): pass\nraise B('x')\n", "raised B: x ("),
    "the end of something": ("raise StopIteration\n", "raised StopIteration (my_ops.py:1)"),
    "no error": ("raise 3\n", "exceptions must derive from BaseException"),
    "too deep": ("def f(): f()\nf()\n", "raised RecursionError"),
    "too large": ("x = bytearray(10**18)\n", "raised MemoryError"),
    "a warning": (
        "import warnings\nwith warnings.catch_warnings():\n"
        "    warnings.simplefilter('error')\n    warnings.warn('w')\n",
        "raised UserWarning: w (",
    ),
    "a bug of refssm": (
        "from refssm.conformance.usage_error import UsageError\nraise UsageError('u')\n",
        "raised UsageError: u",
    ),
    "without itself": ("import sys\ndel sys.modules[__name__]\n1 / 0\n", "(my_ops.py:3)"),
}
NOTHING = {
    "empty": "",
    "a comment": "# nothing\n",
    "another name": "def scan(a, b): return a\n",
    "a near name": "def linear_scam(a, b): return b\n",
    "a number": "linear_scan = 3\n",
    "a list": "linear_scan = [lambda a, b: b]\n",
    "a module": "import numpy as linear_scan\n",
    "ours": "from refssm import linear_scan\n",
    "inside a function": "def outer():\n    def linear_scan(a, b): return b\n",
    "inside a class": "class A:\n    def linear_scan(self, a, b): return b\n",
    "when run only": "if __name__ == '__main__':\n    def linear_scan(a, b): return b\n",
    "deleted": f"{DEF}del linear_scan\n",
    "a gradient only": "def linear_scan_vjp(dx, a, b): return a, b\n",
    "capitals": "def Linear_Scan(a, b): return b\n",
}
ARITY = {
    "one argument": "def linear_scan(a): ...\n",
    "three": "def linear_scan(a, b, c): ...\n",
    "none": "def linear_scan(): ...\n",
    "keywords": "def linear_scan(*, a, b): ...\n",
    "a keyword more": "def linear_scan(a, b, *, chunk): ...\n",
    "any keywords": "def linear_scan(**k): ...\n",
    "a class": "class linear_scan: ...\n",
    "a lambda": "linear_scan = lambda a: a\n",
    "a part": "import functools\nlinear_scan = functools.partial(lambda a, b, c: b, 1, 2)\n",
    "a gradient": f"{DEF}def linear_scan_vjp(a, b): ...\n",
    "no length": "def vandermonde_kernel(v, x): ...\n",
    "another length": "def vandermonde_kernel(v, x, length): ...\n",
    "a length by place": "def vandermonde_kernel(v, x, l, /): ...\n",
    "nothing to construct": "def hippo_legs(): ...\n",
    "a default of any size": "def linear_scan(a, *, c, b='x' * 10**6): ...\n",
    "another operator": declared("'ssd_step'"),
}
LOOKED = {
    "attributes that raise": object_with(f"{CALL}\n    def __getattr__(self, n): raise ValueError"),
    "all attributes raise": object_with(f"{CALL}\n    def __getattribute__(self, n): 1 / 0"),
    "attributes that exit": object_with(f"{CALL}\n    def __getattr__(self, n): raise SystemExit"),
    "a signature that exits": object_with(
        "def __call__(self, a): ...\n    __signature__ = property(lambda c: exit())"
    ),
    "a default that raises": (
        "class X:\n    def __repr__(self): 1 / 0\ndef linear_scan(a, *, b=X(), c): ...\n"
    ),
    "a module that raises": "def __getattr__(n): 1 / 0\n",
    "a module that exits": "def __getattr__(n): raise SystemExit\n",
}
DECLARED = {
    "no operator": (
        declared("'linear_scam'"),
        "`linear_scam` is no operator; did you mean linear_scan?",
    ),
    "no name": (declared(""), "missing 1 required positional argument"),
    "a number": (declared("3"), "wanted the name of an operator, then any of framework"),
    "nothing in brackets": (declared("None"), "wanted the name of an operator, then"),
    "two names": (declared("'linear_scan', 'ssd_step'"), "takes 1 positional argument"),
    "no brackets": (declared("").replace("()", "", 1), "wanted the name of an operator, then"),
    "framework": (of_scan("framework='pytorch'"), "unknown framework 'pytorch'"),
    "a list of them": (of_scan("framework=['torch']"), "unknown framework ['torch']"),
    "device": (of_scan("device=0"), "`device` must be a string, got 0"),
    "no device": (of_scan("device=None"), "`device` must be a string, got None"),
    "a device of nobody": (of_scan("device='GPU0'"), "unknown device 'GPU0' for framework 'numpy'"),
    "a device of JAX": (of_scan("framework='torch', device='gpu'"), "one of cpu, cuda, mps"),
    "a device's number": (of_scan("framework='torch', device='cuda:x'"), "a number: cuda:1"),
    "type": (of_scan("dtypes='float8'"), "unknown type 'float8'"),
    "a type as a number": (of_scan("dtypes=32"), "unknown type 32"),
    "no types": (of_scan("dtypes=None"), "unknown type None"),
    "types of types": (of_scan("dtypes=[['float32']]"), "unknown type ['float32']"),
    "a type of Python": (of_scan("dtypes=(float,)"), "unknown type <class 'float'>"),
    "layout": (of_scan("layout='b l n'"), "layout 'b l n' must have 2 arguments"),
    "a layout as a list": (of_scan("layout=['b l n']"), "`layout` must be a string, got ["),
    "other axes": (of_scan("layout='x y, x y -> x y'"), "gives `a` the axes x y, wanted l n"),
    "two arrows": (of_scan("layout='l -> l -> l'"), "must have 2 arguments"),
    "autodiff of NumPy": (of_scan("vjp=True"), "numpy has no autodiff for vjp=True"),
    "a gradient": (of_scan("vjp=print"), "`vjp` must be True or False, got <built-in"),
    "only a number": (of_scan("only=64"), "`only` must be a function, got 64"),
    "only in words": (of_scan("only='l % 64'"), "`only` must be a function, got 'l"),
    "a budget as a number": (of_scan("accuracy=64"), "`accuracy` must be a Budget, got 64"),
    "no budget": (of_scan("accuracy=None"), "`accuracy` must be a Budget, got None"),
    "a budget's class": (of_scan("accuracy=Budget"), "`accuracy` must be a Budget, got <class"),
    "room for nothing": (of_scan("accuracy=Budget(C=0)"), "between 1 and 1024, got 0"),
    "room in words": (of_scan("accuracy=Budget(C='64')"), "between 1 and 1024, got '64'"),
    "complex room": (of_scan("accuracy=Budget(C=2j)"), "between 1 and 1024, got 2j"),
    "no room": (of_scan("accuracy=Budget(C=None)"), "between 1 and 1024, got None"),
    "arithmetic": (of_scan("accuracy=Budget(computes=32)"), "unknown arithmetic 32"),
    "no arithmetic": (of_scan("accuracy=Budget(computes=None)"), "unknown arithmetic None"),
    "a flag in words": (of_scan("ftz='yes'"), "`ftz` must be True or False, got 'yes'"),
    "a keyword": (of_scan("dtype='float32'"), "unknown keyword `dtype`; did you mean dtypes?"),
    "on no function": (ON_THREE, "implements: wanted a function, got 3"),
}


def missing(folder):
    """No file at all."""


def made(name, text: str | None = SCAN):
    """A function that writes a file, or a folder if there is no text."""

    def make(folder):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        if text is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_text(text, encoding="utf-8")

    return make


def linked(to):
    return lambda folder: (folder / "x.py").symlink_to(to)


NO_CUPY = """raise ModuleNotFoundError("No module named 'cupy'", name="cupy")\n"""
PLACES = {
    "a folder called .py": (made("x.py", None), "x.py", "x.py: not a file"),
    "a link to nothing": (linked("nowhere"), "x.py", "x.py: not a file"),
    "a link to itself": (linked("x.py"), "x.py", "x.py: not a file"),
    "a device": (linked("/dev/zero"), "x.py", "x.py: not a file"),
    "a pipe": (lambda folder: os.mkfifo(folder / "x.py"), "x.py", "x.py: not a file"),
    "a compiled file": (made("x.pyc", "\n\n\n"), "x.pyc", "bad magic number"),
    "a library": (made("x.so", "\x7fELF"), "x.so", "x.so: inspecting it raised ImportError"),
    "a notebook": (made("x.ipynb", "{}"), "x.ipynb", "x.ipynb: not a Python file"),
    "without .py": (made("ops"), "ops", "ops: not a Python file"),
    "a name of two colons": (made("a::b.py", "1 / 0"), "a::b.py", "a::b.py: importing it raised"),
    "lines in a name": (missing, "a\nb.py", "a b.py: no such file"),
    "zeros in a name": (missing, "a\0b.py", "a\\x00b.py: no such file"),
    "a name of no end": (missing, "x" * 5000 + ".py", "xxx…"),
    "nothing": (missing, "", "wanted a file or a module, got ''"),
    "colons": (missing, "::", "wanted a file or a module, got '::'"),
    "a function only": (missing, ":fn", "wanted a file or a module, got ':fn'"),
    "a module of no name": (missing, "nomodule:", "nomodule: no such file, and no module"),
    "here": (missing, ".", ".: no such file, and no module of that name"),
    "a relative module": (missing, "..numpy", "..numpy: no such file, and no module"),
    "a function of numbers": (made("x.py"), "x.py::np", "`np` is a module, not a function"),
    "a function's function": (made("x.py"), "x.py::a::b", "x.py has no function `a::b`"),
    "of no operator": (made("x.py", "f = print"), "x.py::f", "x.py: `f` is not an operator"),
    "a module's own": (missing, "json:nothing", "json has no function `nothing`"),
    "part of no package": (missing, "json.nosuch", "json.nosuch: no such file, and no module"),
    "an address": (missing, "https://example.com/x.py", "example.com/x.py: no such file"),
    "a pattern": (made("x.py"), "*.py", "*.py: no such file"),
    "without CuPy": (
        made("x.py", NO_CUPY),
        "x.py",
        "(x.py:1): pip install 'cupy-cuda13x[ctk]'",
    ),
    "a broken package": (made("pk1/__init__.py", "1 / 0"), "pk1", "pk1: importing it raised Zero"),
    "a package that ends": (made("pk2/__init__.py", "exit()"), "pk2", "raised SystemExit"),
    "no module": (made("pk3.py", "import sys\nsys.modules[__name__] = 3"), "pk3", "inspecting it"),
    "a folder": (made("pk4/a.txt"), "pk4/", "pk4: not a file"),
}
ENDS = {
    "leaves": ("import os; os._exit(0)\n", "importing it ended the process with exit code 0"),
    "is interrupted": ("raise KeyboardInterrupt\n", "importing it raised KeyboardInterrupt"),
    "kills itself": ("import os; os.kill(os.getpid(), 9)\n", "killed the process by SIGKILL"),
    "reads nowhere": ("import ctypes; ctypes.string_at(0)\n", "killed the process by SIGSEGV"),
    "never ends": ("while True: pass\n", "importing it did not return within 0.5 s"),
    "prints": ("print('x' * 10**7)\n1 / 0\n", "raised ZeroDivisionError"),
    "moves and takes all": (
        "import os, sys, signal\nos.chdir('/')\nsys.stdout = sys.stderr = None\nsys.path[:] = []\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n1 / 0\n",
        "raised ZeroDivisionError",
    ),
    "takes our words": (
        "import builtins\nfor n in ('len', 'str', 'Exception'): delattr(builtins, n)\n1 / 0\n",
        "importing it ended the process with exit code 1",
    ),
    "closes our pipe": ("import os; os.closerange(3, 64)\n", "importing it ended the process"),
    "asks": ("input()\n", "raised EOFError"),
}
TEXTS = {
    **{f"syntax: {what}": (text, "Error: ") for what, text in SYNTAX.items()},
    **{f"raises: {what}": told for what, told in RAISED.items()},
    **{f"nothing: {what}": (text, "no function has the name") for what, text in NOTHING.items()},
    **{f"arity: {what}": (text, "cannot be called as ") for what, text in ARITY.items()},
    **{f"looked at: {what}": (text, "inspecting it raised") for what, text in LOOKED.items()},
    **{f"declared: {what}": told for what, told in DECLARED.items()},
}
