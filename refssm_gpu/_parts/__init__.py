"""Launchers that several families share: recurrences, sums of powers, modes of diagonal systems."""
