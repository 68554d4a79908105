"""Layers that convolve with kernels of their own, without a system behind them."""
