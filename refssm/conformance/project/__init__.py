"""The adopter's own files: settings and known failures."""
