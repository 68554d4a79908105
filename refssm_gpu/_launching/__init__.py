"""How kernels are declared, compiled and launched, and how arguments are checked before."""
