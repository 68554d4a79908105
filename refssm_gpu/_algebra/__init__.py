"""What several array-level mirrors share: matrices, exponentials, polynomials, lengths."""
