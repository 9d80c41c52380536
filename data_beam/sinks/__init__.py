"""Sinks: output files, written under a temporary name and renamed when complete."""
