// g++ -O2 -std=c++17 -o scan scan.cpp && refssm verify --exec "./scan {case}" --as linear_scan --vjp
#include <cstdio>

#include "scan.hpp"

int main(int count, char** arguments) { return run(count, arguments, true); }
