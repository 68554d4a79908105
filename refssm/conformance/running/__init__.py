"""One run of the judge: which checks, in which order, with which settings."""
