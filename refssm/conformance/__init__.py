"""The judge: whether an implementation is right, how accurate it is, and if wrong, where."""
