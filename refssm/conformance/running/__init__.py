"""One run of the judge."""
