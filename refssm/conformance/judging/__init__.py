"""Comparing one result with the exact one."""
