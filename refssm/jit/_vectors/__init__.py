"""What Numba has no words for: vectors in registers, and matrices and formulas over them."""
