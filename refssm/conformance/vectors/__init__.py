"""Golden vectors: inputs with correctly rounded outputs and the largest errors that pass.

`draw` finds cases that show an operator's planted bugs, `exact` computes the outputs by two oracles
that must agree, `making` combines them, `document` writes the file, `reading` and `lint` validate
it, and `check` judges implementations by it.
"""
