"""Forms of the answer: lines for people, JSON for programs."""
