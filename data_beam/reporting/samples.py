"""Sections with texts: dropped and kept documents, copies."""

from collections.abc import Mapping, Sequence
from typing import Any

from data_beam.reporting.charts import table
from data_beam.reporting.markup import Content, Html, join, marked, number, percent, tag

Facts = Mapping[str, Any]

_SEARCHES = {"copies": "copies", "split_groups": "documents to share a split"}
_SEARCH_COLUMNS = ("similarity", "bands", "rows", "candidate_probability", "buckets",
                   "largest_bucket")


def _name(row: Mapping[str, Any]) -> Html:
    """Source, path, record and address."""
    record = "" if row["record"] is None else f" #{row['record']}"
    source = [tag("b", row["source"]), " "] if "source" in row else []
    url = [" ", tag("bdi", row["url"])] if row.get("url") else []
    return join([*source, tag("bdi", f"{row['path']}{record}"), *url])


def _text(text: Html, before: int, after: int, language: str | None = None, code: bool = False
          ) -> Html:
    """A text, and how many characters of it are left out."""
    parts = [tag("span", f"… {number(before)} characters before … ", class_="quiet") if before
             else None, text,
             tag("span", f" … {number(after)} characters more", class_="quiet") if after else None]
    # Reachable by keyboard: it scrolls. A browser drops the first line feed.
    return tag("pre", Html("\n"), *parts, lang=language, tabindex="0", dir="auto",
               class_="code" if code else None)


def dropped(facts: Facts) -> Html | None:
    """Samples of dropped documents by stage and reason, and of what could not be read."""
    parts: list[Content] = []
    shown = [entry for entry in facts["samples"]["dropped"] if entry["samples"]]
    for number_of, entry in enumerate(shown):
        made = []
        for row in entry["samples"]:
            why = [tag("span", entry["reason"], class_="chip why")]
            if row["detail"]:
                why.append(tag("span", row["detail"], class_="quiet"))
            body = _text(marked(row["text"], row["marks"]), row["before"], row["after"]) if (
                row["text"]) else None
            made.append(tag("div", tag("div", _name(row), tag("br"), *why), body, class_="sample"))
        first = next((i for i, other in enumerate(shown)
                      if any(row["text"] for row in other["samples"])), 0)
        parts.append(tag(
            "details", tag("summary", tag("b", f"{entry['stage']}: {entry['reason']}"), " ",
                           tag("span", _of(entry["documents"], len(made)), class_="quiet")),
            *made, open="" if number_of == first else None))
    dead = facts["samples"]["dead_letters"]
    if dead:
        rows = [(f"{entry['stage']}: {entry['reason']}", entry["records"], _name(row),
                 row["detail"]) for entry in dead for row in entry["samples"]]
        parts.append(tag("h3", "Records that could not be read"))
        parts.append(table(("stage: reason", "records", "example", "detail"), rows,
                           "dead letters, with a few of each kind; all are in dead_letters/", (1,)))
    if not parts:
        return None
    return join([tag("p", "A random few of each reason, the same in every run; what a rule found "
                     "fault with is ", tag("mark", "marked"), " where it is a part of the text. "
                     "Personal data is replaced by placeholders here.", class_="quiet"), *parts])


def _of(documents: int, shown: int) -> str:
    return f"{number(documents)} document{'' if documents == 1 else 's'}" + (
        f", {shown} shown" if shown < documents else "")


def kept(facts: Facts) -> Html | None:
    """A few documents of each source as they are in the corpus."""
    parts: list[Content] = []
    code = _code_languages(facts)
    sources = [entry for entry in facts["samples"]["kept"] if entry["samples"]]
    for i, entry in enumerate(sources):
        made = []
        for row in entry["samples"]:
            score = "" if row["language_score"] is None else f" {row['language_score']:.2f}"
            chips = [f"{row['language']}{score}", row["licence"], row["domain"], row["split"],
                     f"{number(row['characters'])} characters",
                     *(f"{name} {number(value)}" for name, value in row["scores"].items())]
            made.append(tag(
                "div", tag("div", _name(row), tag("br"),
                           *(tag("span", chip, class_="chip") for chip in chips),
                           tag("span", ", ".join(row["transforms"]), class_="quiet")),
                _text(marked(row["text"], []), 0, row["characters"] - len(row["text"]),
                      language=None if row["language"] in code else row["language"],
                      code=row["language"] in code), class_="sample"))
        parts.append(tag("details", tag("summary", tag("b", entry["source"]), " ",
                                        tag("span", f"{len(made)} shown", class_="quiet")),
                         *made, open="" if i == 0 else None))
    if not parts:
        return None
    return join([tag("p", "A random few of each source, the same in every run, as they are in the "
                     "corpus; beside them what was measured and what changed the text.",
                     class_="quiet"), *parts])


def _code_languages(facts: Facts) -> set[str]:
    """Languages of samples whose language was not guessed from the text: source code."""
    return {row["language"] for entry in facts["samples"]["kept"] for row in entry["samples"]
            if row["language_score"] is None}


def duplicates(facts: Facts) -> Html:
    """Rate of copies, clusters of near copies, the largest ones."""
    found = facts["duplicates"]
    rows = [(reason, count, percent(count, found["examined"]))
            for reason, count in found["dropped"].items()]
    parts: list[Content] = [
        tag("p", f"{number(found['examined'])} documents were compared, and "
            f"{percent(found['rate'])} of them were copies of another one that was kept."),
        table(("dropped for", "documents", "of those compared"), rows,
              "copies; repeated text: nothing was left of a document without lines or paragraphs "
              "that stand in others", (1, 2))]
    near = found["near_copies"]
    if near is None:
        return join(parts)
    parts += [tag("h3", "Near copies"), tag(
        "p", f"{number(near['clusters'])} clusters of {number(near['documents'])} documents; one "
        "of each cluster is kept.")]
    searches = [(_SEARCHES.get(name, name), *(search.get(key) for key in _SEARCH_COLUMNS))
                for name, search in near["search"].items()]
    if searches:
        parts.append(table(
            ("what for", "similarity", "bands", "rows", "found", "buckets", "largest bucket"),
            searches, "how similar documents were looked for; found: probability that a pair just "
            "as similar meets in a bucket", range(1, 7)))
    if near["sizes"]:
        parts.append(table(("documents in the cluster", "clusters"), _sizes(near["sizes"]),
                           "clusters by size", (1,)))
    for i, entry in enumerate(near["largest"]):
        parts.append(_cluster(entry, i == 0))
    return join(parts)


def _sizes(sizes: Sequence[Sequence[int]]) -> list[tuple[Any, int]]:
    """Clusters by size, sizes of 8 and more in steps of a power of two."""
    steps: dict[int, int] = {}
    for size, count in sizes:
        low = size if size < 8 else 1 << (size.bit_length() - 1)
        steps[low] = steps.get(low, 0) + count
    return [((str(low) if low < 8 else f"{low} to {2 * low - 1}", low), count)
            for low, count in sorted(steps.items())]


def _cluster(entry: Mapping[str, Any], opened: bool) -> Html:
    kept_one = entry["members"][0]
    rows = [(_name(row), "kept" if row["kept"] else "dropped",
             (f"{row['similarity']:.3f}", row["similarity"]), row["characters"])
            for row in entry["members"]]
    text = entry.get("text")
    more = entry["documents"] - len(rows)
    return tag(
        "details", tag("summary", tag("b", f"{number(entry['documents'])} documents"), " ",
                       tag("span", _name(kept_one), class_="quiet")),
        table(("document", "", "similarity", "characters"), rows,
              "similarity to the one that is kept" + (f"; {number(more)} more documents are in "
                                                      "clusters/" if more else ""), (2, 3)),
        tag("div", tag("div", "the one that is kept: ", _name(kept_one)),
            _text(marked(text, []), 0, kept_one["characters"] - len(text)), class_="sample")
        if text else None, open="" if opened else None)
