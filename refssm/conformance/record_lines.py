"""JSON with one record a line: a file is short, and a diff shows which record changed."""

import json
from collections.abc import Collection, Mapping


def record_lines(document: Mapping, lists: Collection[str]) -> str:
    """The text of a document; each item of a list or an object named in `lists` has its own line.

    So has each key of the document and of every object that contains such a list. Everything else
    is on one line. With `lists = ["cases"]`:

        {
         "seed": 0,
         "cases": [
          {"name": "first", "values": [1, 2]},
          {"name": "second", "values": [3, 4]}
         ]
        }
    """
    return _lines(document, lists, "") + "\n"


def _lines(value: Mapping | list, lists: Collection[str], indent: str) -> str:
    """A list or an object with each item on its own line."""
    inner = indent + " "
    if isinstance(value, Mapping):
        begin, end = "{", "}"
        texts = [f"{_word(k)}: {_text(v, lists, inner, k in lists)}" for k, v in value.items()]
    else:
        begin, end = "[", "]"
        texts = [_text(item, lists, inner) for item in value]
    items = f",\n{inner}".join(texts)
    return f"{begin}\n{inner}{items}\n{indent}{end}"


def _text(value, lists: Collection[str], indent: str, named: bool = False) -> str:
    """Several lines if the value is named in `lists` or has a key that is; else one."""
    has_one = isinstance(value, Mapping) and not value.keys().isdisjoint(lists)
    if value and (has_one or (named and isinstance(value, Mapping | list))):
        return _lines(value, lists, indent)
    return _word(value)


def _word(value) -> str:
    return json.dumps(value, ensure_ascii=False)
