"""The doctor: guesses which operator each function of a file is, and tries its guesses."""
