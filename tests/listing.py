"""Lists of known failures for tests."""

from refssm.conformance.judging.result import Result

FAR, PAST = "2999-01-31", "2020-01-31"
VALUE = "linear_scan/value[float32]"


def entry(id=VALUE, reason="carries too much", expires=FAR, implementation=""):
    mine = f'implementation = "{implementation}"\n' if implementation else ""
    return f'[[known]]\nid = "{id}"\n{mine}reason = "{reason}"\nexpires = {expires}\n'


def listed(*entries, name="known.toml"):
    """Write a list to the current folder; returns its name."""
    with open(name, "w", encoding="utf-8") as file:
        file.write("\n".join(entries))
    return name


def result(verdict="wrong", implementation="my_ops.py", id=VALUE):
    operator, _, check = id.rstrip("]").partition("/")
    name, _, dtype = check.partition("[")
    return Result(operator, implementation, name, dtype, verdict)
