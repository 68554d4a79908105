"""How one call is made: in which layout, slice by slice, and after earlier calls."""
