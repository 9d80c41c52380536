"""datatrove's side of benchmarks.corpus; runs where datatrove is installed, without maxlm.

    PYTHON benchmarks/corpus_datatrove.py filters|signatures DOCUMENTS COUNT OUTPUT
    PYTHON benchmarks/corpus_datatrove.py chain FOLDER PROCESSES OUTPUT
"""

# pyright: reportMissingImports=false
# datatrove is in another interpreter.
import json
import sys
import time
from pathlib import Path


def made_filters():
    from datatrove.pipeline.filters import (
        C4QualityFilter,
        FineWebQualityFilter,
        GopherQualityFilter,
        GopherRepetitionFilter,
    )
    return {"gopher_quality": GopherQualityFilter(), "gopher_repetition": GopherRepetitionFilter(),
            "c4": C4QualityFilter(), "fineweb": FineWebQualityFilter()}


def minhash_config():
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.utils.hashing import HashConfig
    return MinhashConfig(num_buckets=14, hashes_per_bucket=8, n_grams=5,
                         hash_config=HashConfig(precision=64))


def filters(texts, output):
    """Fate of each document: the filter that dropped it and why, or null."""
    from datatrove.data import Document
    rules = made_filters()
    fates = []
    start = time.process_time()
    for text in texts:
        document = Document(text=text, id="")
        fate = None
        for name, rule in rules.items():
            result = rule.filter(document)
            if result is not True:
                fate = [name, result[1] if isinstance(result, tuple) else ""]
                break
        fates.append(fate)
    seconds = time.process_time() - start
    Path(output).write_text(json.dumps(fates))
    return seconds


def signatures(texts, output):
    from datatrove.pipeline.dedup.minhash import MinhashDedupSignature
    step = MinhashDedupSignature(output_folder=output, config=minhash_config())
    start = time.process_time()
    for text in texts:
        shingles = step.get_shingles(text)
        if shingles.size:
            step.get_signature(shingles)
    return time.process_time() - start


def chain(folder, processes, output):
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter
    config = minhash_config()

    def run(name, tasks, *pipeline):
        LocalPipelineExecutor(pipeline=list(pipeline), tasks=tasks, workers=processes,
                              logging_dir=f"{output}/logs/{name}").run()

    kept = f"{output}/filtered"
    run("filters", processes, JsonlReader(folder, glob_pattern="*.jsonl"), *made_filters().values(),
        JsonlWriter(kept, compression=None))
    run("signatures", processes, JsonlReader(kept),
        MinhashDedupSignature(output_folder=f"{output}/signatures", config=config))
    run("buckets", config.num_buckets,
        MinhashDedupBuckets(input_folder=f"{output}/signatures", output_folder=f"{output}/buckets",
                            config=config))
    run("cluster", 1, MinhashDedupCluster(input_folder=f"{output}/buckets",
                                          output_folder=f"{output}/remove", config=config))
    run("output", processes, JsonlReader(kept), MinhashDedupFilter(input_folder=f"{output}/remove"),
        JsonlWriter(f"{output}/documents", compression=None))
    count = 0
    for path in Path(output, "documents").glob("*.jsonl"):
        with path.open() as handle:
            count += sum(1 for _ in handle)
    return count


def main():
    mode, source, number, output = sys.argv[1:]
    if mode == "chain":
        print(json.dumps({"kept": chain(source, int(number), output)}))
        return
    texts = []
    with open(source) as handle:
        for line in handle:
            if len(texts) == int(number):
                break
            texts.append(json.loads(line)["text"])
    seconds = {"filters": filters, "signatures": signatures}[mode](texts, output)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
