"""Stage `report`: CORPUS/report.html and CORPUS/report.json, what the corpus is like."""

from data_beam.stages.context import Context


def run(context: Context) -> None:
    """Runs the stage; `place.output` is the corpus itself."""
