"""The checks of an implementation, and running one check over many cases."""
