"""Stage `report`: CORPUS/report.html and CORPUS/report.json, what the corpus is like."""

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.stage_context import Context, WriteReport, named
from data_beam.reporting.make import make
from data_beam.sinks.shards import file_report


def run(context: Context) -> None:
    """Runs the stage; `place.output` is the corpus itself."""
    paths = context.paths
    scratch = FileSystems.join(paths.temporary, "work")
    files.make_folder(scratch)
    contents = make(context.corpus, paths.output, scratch, paths.progress, context.pipeline)
    write = WriteReport(paths.reports)
    for name, data in contents.items():
        path = FileSystems.join(paths.output, name)
        size, digest = files.write_atomically(path, paths.temporary,
                                              lambda handle, data=data: handle.write(data))
        write.process(named(file_report(paths, path, size, digest, 1)))
