"""What an implementation owes, case by case."""
