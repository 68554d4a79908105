"""Golden vectors: inputs with correctly rounded outputs, and how far a good program may be off.

`draw` finds cases that show an operator's planted bugs, `exact` rounds by two oracles that must
agree, `document` is the file, `reading` and `lint` doubt it, `check` judges by it.
"""
