"""Experiments that train models, one file each; `trials.py` trains them in folders.

As in `refssm.experiments`, with `trials(seeds, quick)`: the models, and `measured(runs)`: what
their tests say, which costs nothing. So runs can be interrupted, shared and read again.
"""
