// As scan.cpp, but every block of 64 steps begins from rest: the carry is lost.
#include <cstdio>

#include "scan.hpp"

int main(int count, char** arguments) { return run(count, arguments, false); }
