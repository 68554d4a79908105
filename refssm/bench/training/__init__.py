"""Training steps side by side: a model of layers on our operators, and the same model in JAX."""
