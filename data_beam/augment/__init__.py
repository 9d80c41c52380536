"""Augmented documents: synonyms, templates, back-translation."""
