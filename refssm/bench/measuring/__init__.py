"""Times, memory, accuracy, and the rates of the machine."""
