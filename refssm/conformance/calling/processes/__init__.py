"""The processes that run an author's code: how they start, speak, and end with all they started."""
