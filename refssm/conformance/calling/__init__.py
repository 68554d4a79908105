"""Finding an implementation and calling it."""
