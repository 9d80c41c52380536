"""The corpus: Apache Beam jobs that turn raw sources into clean documents and token shards."""

import logging
import sys

from maxlm.cli import interrupts

if sys.argv[:1] == ["-m"]:  # a command, of which Python imports the package first
    interrupts.end_at_once()  # imports take seconds, and there is nothing to clean up

# Beam logs this on import wherever Google Cloud's BigQuery client is absent, which is everywhere
# but in Dataflow jobs; nothing here reads BigQuery.
logging.getLogger().addFilter(
    lambda record: not str(record.msg).startswith("apitools not found, and bigquery"))

import data_beam.filters  # noqa: E402 - the filters add their settings to FilterConfig
