"""The sentences of the page about the comparison."""

TITLE = """\
# The judge beside other checks

This page is written by `PYTHONPATH=tests python -m selftest.compare --record`. Do not edit it.

A kernel is usually tested by comparing it with a slow loop at a few sizes, within a tolerance. Here
the same wrong and right kernels go through such checks, as public libraries publish them, and
through refssm's judge. A wrong kernel has one planted bug; a right one is one of refssm's honest
implementations, each in another algorithm. All are judged in single precision.
"""

HOW = """\
The checks were written again in NumPy, from the published numbers; no line of the libraries runs
here. The truth of a comparison is refssm's reference in the same precision, as in the tests of
these libraries. In "rule, sizes and inputs", "of" gives the library's own size where ours is
smaller, so that all programs run in minutes. Inputs are standard normal, unless a library's test or
stability wants another draw (`comparing/inputs.py`).

- A kernel has a forward program and a gradient. If one is wrong, the other is the reference's. This
  helps `check_grads`: it compares a gradient with differences of the program itself, so it sees a
  wrong value only because the gradient beside it is right.
- "Caught" is said of a wrong kernel that is refused for any reason. A check that refuses right
  kernels, too, catches some wrong ones only for that.
- A check stops at its first difference. Right kernels are run up to l = 1024, since some of them
  need memory that is quadratic in the length; wrong ones at all lengths.
- The judge runs with `--dtype`, in the type in which a bug shows: complex64 for a bug that only
  complex numbers show, else float32. The other checks get the same type. complex64 is outside what
  mamba_ssm's, fla's and KernelBench's tests cover; fla's comparison cannot take complex numbers, so
  `|x|²` stands for its square.
- With the variable `FLA_CI_ENV`, fla's comparison only warns below a ratio of 0.01 or an error of
  0.3. It is run here without it.
- Cells of checks that did not change were kept when a check was added, with their seconds. Those of
  GPU MODE, of the three operators of gated linear attention and of the stages of a chunk were
  recorded later, on a machine that was not idle.
- Seconds are medians of processor time: reference, program and comparison. For the judge they are
  those of one program in forty, whole runs with nothing kept from earlier ones, without the start
  of Python. A wrong kernel takes less, because its run ends at the first failure. All are NumPy
  programs, so only ratios mean something.

Run it again with `PYTHONPATH=tests python -m selftest.compare --record`, about 30 minutes on one
core, or for some operators with `--only linear_scan,ssd`; `--only apart` runs the bugs of public
reports, `--only task` those of public tasks, and `--checks "GPU MODE"` one check only, with the
cells of the others as they are. Draws are seeded. Every verdict is in [compare.csv](compare.csv).
"""

REFUSED = """\
A sum that cancels has the rounding error of its terms, not of its result. PyTorch's defaults allow
1e-8 or 1e-5 there, however large the terms are. KernelBench's problem draws the logarithms of the
decays from a normal distribution, so states grow by many orders of magnitude, and entries that
cancel are off by more than 1e-4. Differences with ε = 1e-4 in float32 are uncertain by about 6e-4
of the outputs, so `check_grads` refuses some right gradients by chance.
"""

APART_TEXT = """\
Mistakes that public reports about other libraries describe, written anew as bugs of our operators
(`comparing/reported.py`). They are those of a short search that one of our operators can have; they
were chosen before any of them was run, and all are in the table. None was planted for the judge,
but some are like bugs that were. A bug made in a copy of a public library belongs here, too.
"""

TASK_TEXT = """\
## Tasks of this family

GPU MODE's reference-kernels have three tasks of Gated DeltaNet by chunks. They are the
[stages](operators/linear_attention_stages.md) of refssm, so the column of GPU MODE has their own
inputs, sizes and tolerance there. KernelBench has two tasks of Mamba-2; it has their inputs for
`ssd_chunked`. Neither has a task of RWKV or of gated linear attention without a delta rule. The
values of the reference programs of these tasks are right
([GPU MODE](findings/gpu_mode.md), [KernelBench](findings/kernelbench.md)).

Caught of the wrong kernels of the stages, but for wrong gradients, which no task has:
"""

WHY_TEXT = """\
The tasks have no state before the first chunk and none after the last one, so "S not used" and a
wrong last state are no bugs of theirs. The rest is a matter of inputs, not of the tolerance. Their
generator draws a gate −|N| for each step and sums the gates from the first step of the sequence on.
Then it calls the function that sums the gates of a chunk. So a gate is the sum of all before it,
about −0.8 t at step t, and from the second chunk on G is about −52 or less. Nothing is left of what
a chunk passes to the next, but for one step of it. With gates as they are, their check passes the
first two programs below at all six sizes. So it does if their own code runs on a processor,
`generate_input` and `check_implementation`. With gates summed once, it refuses both at each size
with more than one chunk. The third program has the usual gates in all columns.
"""

LIMITS = """\
## What this does not show

- The planted bugs were written to test this judge, and a bug that it missed was a reason to improve
  it. So "all" is true by construction, and is no estimate of what it catches of bugs that nobody
  planted; the section before has a few of those. For the other checks these bugs are unseen.
- The bugs are not a sample of what people do. Many are mistakes seen in public code, others were
  made up because a check has to catch something. The shares of the groups are those of refssm's
  list.
- The right kernels, too, were written by the authors of the judge, and a right kernel that it
  refused was a reason to change it ([the soak](soak.md)).
- The libraries run their tests on graphics cards, in 16-bit types and at larger sizes too. Their
  tolerances have to admit TF32 and atomic additions in any order, which these kernels do not have.
  More sizes would catch more of the group "borders".
- GPU MODE's tasks are a contest, and run on graphics cards with other draws; more seeds are drawn
  before times are taken, of the same kind.
- A library's numbers are for its own operators. What they do for another operator says how a
  borrowed tolerance works, not how good the library's tests are.
- Most of these checks are one part of a test suite: a wrong gradient or a memory error may be
  caught elsewhere.
"""
