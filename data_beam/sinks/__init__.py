"""Shards on disk: written under a temporary name, renamed when whole."""
