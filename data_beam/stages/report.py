"""Stage `report`: CORPUS/report.html and CORPUS/report.json, what the corpus is like."""

from apache_beam.io.filesystems import FileSystems

from data_beam.reporting.make import make
from data_beam.sinks import files
from data_beam.stages.context import Context, WriteReport, named
from data_beam.stages.shards import file_report


def run(context: Context) -> None:
    """Runs the stage; `place.output` is the corpus itself."""
    place = context.place
    scratch = FileSystems.join(place.temporary, "work")
    files.make_folder(scratch)
    contents = make(context.corpus, place.output, scratch, place.progress, context.pipeline)
    write = WriteReport(place.reports)
    for name, data in contents.items():
        path = FileSystems.join(place.output, name)
        size, digest = files.write_atomically(path, place.temporary,
                                              lambda handle, data=data: handle.write(data))
        write.process(named(file_report(place, path, size, digest, 1)))
