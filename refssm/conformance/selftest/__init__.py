"""The judge judged: soak, naming, verdicts."""
