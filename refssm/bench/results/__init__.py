"""The rows of a run, its JSON file, its lines, and the comparison of two runs."""
