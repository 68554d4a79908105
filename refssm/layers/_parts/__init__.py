"""What several layers are made of: systems, banks, linear maps, norms."""
