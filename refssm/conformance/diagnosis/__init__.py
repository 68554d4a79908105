"""The diagnosis of a failure: its likely cause, and how to reproduce it."""
