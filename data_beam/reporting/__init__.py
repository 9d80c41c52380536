"""The report on a corpus: summaries of shards, the facts computed from them, and the page."""
