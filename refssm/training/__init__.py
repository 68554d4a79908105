"""Training without autodiff: tasks, losses, AdamW, the loop, checkpoints, and runs in folders."""
