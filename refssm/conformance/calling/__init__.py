"""One call of somebody's function."""
