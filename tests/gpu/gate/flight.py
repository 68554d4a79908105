"""How many bytes a thread has asked of memory before it waits for the first of them, from PTX.

The text is walked once from top to bottom, through both arms of a branch and once through a loop. A
load is under way until an instruction that is no copy uses its result; then all loads before it
have ended, too. The assembler may move loads further up than the text has them, so a thread has
at least as many bytes under way.
"""

from __future__ import annotations

import re

_INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s+([^;]*);", re.MULTILINE)
_COPIES = ("mov.", "neg.f")  # machine instructions negate what they read
_REGISTER = re.compile(r"%\w+")
_LOAD = re.compile(r"ld\.global(?:\.(?!v\d)[a-zA-Z]\w*(?:::\w+)*)*?(?:\.v(\d))?\.[a-z](\d+)")
_ASYNC = re.compile(r"\[[^]]*\],\s*\[[^]]*\],\s*(\d+)")


def under_way(body: str) -> int:
    """The most bytes under way at any place of a function's text."""
    loads: list[int] = []  # the bytes of each, in order
    arrived = most = opened = 0  # loads before `arrived` have ended
    pending: dict[str, int] = {}  # register -> the load that fills it
    groups: list[int] = []  # copies to shared memory, as a wait counts them
    for code, operands in _INSTRUCTION.findall(body):
        written, read = _operands(operands)
        filling = [pending[r] for r in read if r in pending]
        if filling and not code.startswith(_COPIES):
            arrived, filling = max(arrived, *(load + 1 for load in filling)), []
        for register in written:
            pending.pop(register, None)
        if found := _LOAD.fullmatch(code):
            filling = [len(loads)]
            loads.append(int(found[1] or 1) * int(found[2]) // 8)
        if filling:
            pending |= dict.fromkeys(written, filling[-1])
        opened, groups = _copies(code, operands, opened, groups)
        most = max(most, sum(loads[arrived:]) + sum(groups) + opened)
    return most


def _operands(text: str) -> tuple[list[str], list[str]]:
    """The registers that an instruction writes, and those that it reads."""
    first = re.match(r"\s*(\{[^}]*\}|[^,]*)", text)
    written = first[0] if first and "[" not in first[0] else ""
    return _REGISTER.findall(written), _REGISTER.findall(text[len(written) :])


def _copies(code: str, operands: str, opened: int, groups: list[int]) -> tuple[int, list[int]]:
    """Bytes of asynchronous copies in the open group, and in each closed one."""
    if code.startswith("cp.async.commit_group"):
        return 0, [*groups, opened]
    if code.startswith("cp.async.wait_all"):
        return 0, []
    if code.startswith("cp.async.wait_group"):
        left = int(operands.strip() or 0)
        return opened, groups[len(groups) - left :] if left else []
    if code.startswith("cp.async.c") and (found := _ASYNC.search(operands)):
        return opened + int(found[1]), groups
    return opened, groups
