"""Right and wrong programs through the checks that people use now, and through the judge."""
