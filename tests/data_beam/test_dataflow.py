"""The jobs as Dataflow gets them: Beam builds the request and, in a dry run, does not send it."""

import contextlib
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from data_beam import prepare
from data_beam.base.stage_context import Context, StagePaths
from data_beam.reporting import corpus_report
from data_beam.runners import beam_options
from data_beam.stages import stage_manifest
from data_beam.stages.run import RUN
from maxlm.config.schema import ConfigError
from tests.data_beam.runs import text_recipe

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("--runner=DataflowRunner", "--project=some-project", "--region=europe-west4",
           "--temp_location=gs://bucket/tmp", "--staging_location=gs://bucket/staging",
           f"--setup_file={ROOT / 'setup.py'}", "--job_name=maxlm", "--no_auth", "--dry_run=True")


def test_every_stage_is_a_job_that_dataflow_takes(tmp_path):
    pytest.importorskip("google.cloud.dataflow", reason="pip install google-cloud-dataflow-client")
    options = beam_options.pipeline_options(OPTIONS)
    jobs = {}

    for stage in stage_manifest.STAGES:
        def submit(build, stage=stage) -> None:
            root = beam_options.make_pipeline(options)
            build(root)
            jobs[stage] = root.run().job

        if stage == "report":  # its command reads what workers wrote, so there must be a bucket
            submit(lambda root: corpus_report.build(root, corpus_report.Job(
                "gs://bucket/out", 3, "gs://bucket/out/_temporary/work", {"en": 0.5}, (), "")))
            continue
        RUN[stage](Context(text_recipe(tmp_path), StagePaths(
            "gs://bucket/in", ("gs://bucket/in",), "gs://bucket/out", "gs://bucket/out/_temporary",
            "", range(3)), submit))
    assert jobs.keys() == set(stage_manifest.STAGES)
    for stage, job in jobs.items():
        assert '"JOB_TYPE_BATCH"' in job.json()
        pipeline = job.proto_pipeline
        assert any(t.spec.urn == "beam:transform:pardo:v1"
                   for t in pipeline.components.transforms.values()), stage
        environments = [e for e in pipeline.components.environments.values()
                        if e.urn == "beam:env:docker:v1"]
        # What workers install before they unpickle our functions: the package that setup.py makes.
        staged = {d.role_payload.decode("utf-8", "ignore") for e in environments
                  for d in e.dependencies}
        assert any("workflow.tar.gz" in payload for payload in staged), stage
        # A graph over 10 MB is refused; ours does not grow with the corpus.
        assert len(pipeline.SerializeToString()) < 1_000_000


def test_what_a_worker_installs_holds_every_module(tmp_path):
    """`setup.py sdist`, as Beam calls it, against the files of the repository."""
    subprocess.run([sys.executable, "setup.py", "-q", "sdist", "--dist-dir", str(tmp_path)],
                   cwd=ROOT, check=True, capture_output=True)
    archive, = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        packed = {name.partition("/")[2] for name in tar.getnames()}
    listed = subprocess.run(["git", "ls-files", "maxlm", "data_beam"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    assert len(listed) > 100
    assert {name for name in listed if (ROOT / name).exists()} - packed == set()


def test_options_that_the_runner_refuses_are_one_line(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    options = beam_options.pipeline_options(["--runner=DataflowRunner", "--no_auth"])
    with pytest.raises(ConfigError, match=r"^Beam options: .*required option: project") as raised, \
            contextlib.chdir(ROOT):
        prepare.prepare(text_recipe(tmp_path), str(tmp_path / "out"), options)
    assert "\n" not in str(raised.value)
