"""For laws that people write themselves: the judge's cases, its values and its bounds, in public.

`refssm.testing` has the functions; they import these files when they are called.
"""
