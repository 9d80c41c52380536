"""Measurements behind the numbers in docs/benchmarks.md; each module is a command."""
