"""How mirrors are compiled: kernels as pieces of machine code, on disk and on all cores."""
