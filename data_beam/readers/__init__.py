"""Readers: files to records. What cannot be read becomes a dead letter."""
