"""The corpus: Apache Beam jobs that turn raw sources into clean documents and token shards."""
