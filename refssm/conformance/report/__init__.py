"""Reports of the results: lines of text, JSON, and an HTML page."""
