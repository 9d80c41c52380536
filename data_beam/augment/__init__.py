"""Documents made from training documents: synonyms, templates, back-translation."""
