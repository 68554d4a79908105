"""What a failure looks like, and how to see it again."""
