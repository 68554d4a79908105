"""One run on many processes."""
