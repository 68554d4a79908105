"""What is drawn: sizes, knobs and a seed, and the arrays they make."""
