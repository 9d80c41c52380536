"""Filters that use trained models (perplexity, quality, safety), and the training of these
models."""
