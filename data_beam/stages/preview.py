"""What a run would do: the plan, and the decision of each stage on some documents."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence

from data_beam.base.filter import Filter
from data_beam.base.records import DeadLetter, Document, Dropped, Record
from data_beam.config import RecipeConfig
from data_beam.extract.document import process
from data_beam.filters.chain import judge, make_filters
from data_beam.readers.listing import File
from data_beam.readers.read_file import read_file
from data_beam.stages import stage_manifest, start

DOCUMENTS = 200
"""Read for the preview, the same number from each source."""
_PER_FILE = 20


def show(recipe: RecipeConfig, output: str, stages: Sequence[str] = stage_manifest.STAGES,
         replace: bool = False) -> None:
    """Prints the plan of a recipe and a preview; writes nothing.

    Args:
      recipe: checked recipe.
      output: folder of the corpus.
      stages: those that would run.
      replace: whether another corpus there would be replaced.

    Raises:
      ConfigError: what a real run would say before it starts; see `start.check`.
    """
    beginning, rules = start.check(recipe, output, stages, replace)
    listing = beginning.listing
    rules = rules or make_filters(recipe)
    print(_plan(recipe, beginning, rules, output, stages))
    print()
    decided: Counter[str] = Counter()
    seen: dict[str, str] = {}
    number = 0
    decides = stage_manifest.STAGES[:max(map(stage_manifest.STAGES.index, stages)) + 1]
    for name, end, steps in _preview(recipe, listing, rules, seen, decides):
        number += 1
        decided[end] += 1
        print(f"{number:4d}  {name}\n      {' > '.join(steps)}")
    print()
    print(f"of {number} documents:")
    for end, count in sorted(decided.items(), key=lambda item: (item[0] != "kept", -item[1])):
        print(f"  {count:4d}  {end}")
    if "dedup" in decides:
        print("near copies are found among all documents only, in a real run")
    else:
        print(f"after {decides[-1]}, the last stage of this run")


def _plan(recipe: RecipeConfig, beginning: start.Start, rules: Sequence[Filter],
          output: str, stages: Sequence[str]) -> str:
    lines = [f"plan for {output}", "  sources:"]
    for source in recipe.sources:
        of_source = [file for file in beginning.listing if file.source == source.name]
        formats = ", ".join(sorted({entry.format for entry in source.inputs}))
        lines.append(f"    {source.name} ({source.domain}, {source.licence}): {len(of_source):,} "
                     f"files, {sum(file.size for file in of_source) / 1e6:.1f} MB, {formats}")
    lines += [f"    {note}" for note in beginning.notes]
    if beginning.whole:
        lines.append("  the corpus is there already, whole and of this recipe: nothing to do")
        return "\n".join(lines)
    if beginning.replaces:
        lines.append("  the corpus of another recipe or other files that is there is replaced")
    lines.append("  stages:")
    what = {"filter": ", ".join(rule.name for rule in rules), "report": "report.html, report.json"}
    for stage in stage_manifest.STAGES:
        text = what.get(stage, ", ".join(stage_manifest.SECTIONS[stage]))
        note = " (done before)" if stage in beginning.done else \
            "" if stage in stages else " (not in this run)"
        lines.append(f"    {stage}{note}: {text}")
        if stage == "filter" and stage in stages:
            lines += [f"      {note}" for rule in rules for note in rule.notes()]
    lines.append(f"  {recipe.shards} shards of each kind of output")
    return "\n".join(lines)


def _records(recipe: RecipeConfig, listing: Sequence[File]
             ) -> Iterator[Record | Dropped | DeadLetter]:
    """Some records of each source: files in the order of the hash of their paths."""
    for source in recipe.sources:
        wanted = max(1, DOCUMENTS // len(recipe.sources))
        of_source = sorted((file for file in listing if file.source == source.name),
                           key=lambda file: hashlib.sha256(file.path.encode()).digest())
        for i, file in enumerate(of_source):
            # Few files must give more of their documents.
            share = max(_PER_FILE, -(-wanted // (len(of_source) - i)))
            for count, item in enumerate(read_file(
                    file, source, recipe.limits.max_record_bytes), 1):
                yield item
                wanted -= 1
                if not wanted or count == share:
                    break
            if not wanted:
                break


def _preview(recipe: RecipeConfig, listing: Sequence[File], rules: list[Filter],
             seen: dict[str, str], stages: Sequence[str]
             ) -> Iterator[tuple[str, str, list[str]]]:
    """For each document its name, its end and the decision of each of the stages until then."""
    for item in _records(recipe, listing):
        origin = item.origin
        name = f"{origin.source} {origin.path}" + (
            f" #{origin.record}" if origin.record is not None else "")
        outcome = process(item, recipe) if isinstance(item, Record) else item
        steps = ["read"]
        if isinstance(outcome, Document):
            steps.append(f"extract: {len(outcome.text):,} characters"
                         + (f" ({', '.join(outcome.transforms)})" if outcome.transforms else ""))
            document = outcome
            for stage, outcome in judge(document, rules if "filter" in stages else []):
                if isinstance(outcome, Document):
                    steps.append(stage + _changes(document, outcome))
                    document = outcome
        if isinstance(outcome, Document) and "dedup" in stages:
            first = seen.setdefault(outcome.sha256, name)
            if first != name:
                outcome = Dropped(origin, "dedup", "exact duplicate", f"same text as {first}")
        if isinstance(outcome, Document):
            yield name, "kept", [*steps, "kept"]
            continue
        verb = "dropped" if isinstance(outcome, Dropped) else "dead letter"
        steps.append(f"{verb} by {outcome.stage}: {outcome.reason}"
                     + (f" ({outcome.detail})" if outcome.detail else ""))
        yield name, f"{verb} by {outcome.stage}: {outcome.reason}", steps


def _changes(before: Document, after: Document) -> str:
    """What a rule changed, in brackets."""
    parts = []
    if after.language != before.language:
        parts.append(f"{after.language} {after.language_score:.2f}")
    parts += [f"{key} {value:g}" for key, value in after.scores.items()
              if before.scores.get(key) != value]
    parts += after.transforms[len(before.transforms):]
    return f" ({', '.join(parts)})" if parts else ""
