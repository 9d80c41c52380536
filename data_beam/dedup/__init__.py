"""Copies of a document, found by hashes alone."""
