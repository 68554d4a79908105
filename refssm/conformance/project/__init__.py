"""The author's project files: settings and known failures."""
