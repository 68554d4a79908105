"""One result against the truth."""
