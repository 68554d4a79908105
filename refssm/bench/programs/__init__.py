"""The implementations of an operator: found, judged, and called in their frameworks."""
