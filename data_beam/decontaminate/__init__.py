"""Parts of evaluation sets in a corpus: found by n-grams, dropped or removed."""
