"""Repairs of the text itself, and its language."""
