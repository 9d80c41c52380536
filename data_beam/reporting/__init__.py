"""The report on a corpus: summaries of shards, what follows from them, and the page."""
