"""The kernels on the CPU, for tests: compiled by a C++ compiler, run on NumPy arrays."""
