"""What several array-level mirrors share: matrices, exponentials, polynomials, transform lengths."""
