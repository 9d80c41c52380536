"""Filters that are models: perplexity, quality, safety; what trains them is beside `prepare`."""
