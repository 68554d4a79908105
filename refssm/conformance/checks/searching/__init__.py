"""How cases are searched: one run of Hypothesis, and what a search has found."""
