"""Tasks from local copies of public data sets: `LOCAL` has them by name, each made of a folder.

Every reader knows the published files of one data set. Nobody here has run them on the real data:
they are tested on small files of the same formats.
"""

from refssm.training.tasks.local.catalog import LOCAL

__all__ = ["LOCAL"]
