"""Without a GPU: kernels compile for real cards, and a model of how fast they will be."""
