"""What is timed: operators or an author's functions, their sizes, their inputs."""
