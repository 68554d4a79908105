"""Linear algebra and arithmetic in NumPy that references share; it knows no operator."""
