// As scan.cpp, but every block of 64 steps starts from the zero state: the carry is missing.
#include <cstdio>

#include "scan.hpp"

int main(int count, char** arguments) { return run(count, arguments, false); }
