"""Sections with numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from data_beam.reporting.charts import bar, histogram, stacked, table
from data_beam.reporting.markup import (
    Content,
    Html,
    join,
    megabytes,
    number,
    percent,
    rounded,
    tag,
)

Facts = Mapping[str, Any]
_TITLES = {
    "characters": ("Length", "characters of a document"),
    "language_score": ("Language score", "probability of the language that was named"),
    "perplexity": ("Perplexity", "of a document under the model of its language"),
    "quality": ("Quality", "score of the classifier, 0 to 5"),
    "toxicity": ("Toxicity", "probability given by the classifier"),
}
_MANY_SOURCES = 7


def heading(facts: Facts) -> Html:
    """A line and the tiles below the title."""
    total, inputs = facts["total"], facts["inputs"]
    languages = facts["mixture"]["language"]["rows"]
    tiles = [
        (rounded(total["kept"]), "documents kept", f"{percent(total['kept'], total['read'])} of "
         f"{number(total['read'])} read"),
        (megabytes(total["bytes"]), "of text", f"{rounded(total['characters'])} characters"),
        (number(len(facts["sources"])), "sources",
         f"{number(len(facts['mixture']['licence']['rows']))} licences"),
        (number(len(languages)), "languages", ", ".join(row["language"] for row in languages[:4])
         + (", …" if len(languages) > 4 else "")),
        (percent(facts["duplicates"]["rate"]), "copies removed",
         f"of {number(facts['duplicates']['examined'])} compared"),
        (number(total["dead_letters"]), "unreadable records", "in dead_letters/"),
    ]
    if facts["tokenizer"]:
        tiles.insert(2, (rounded(total["tokens"]), "tokens",
                         f"{total['bytes'] / max(1, total['tokens']):.2f} bytes each"))
    return join([
        tag("p", f"Made from {number(inputs['files'])} files, {megabytes(inputs['bytes'])}.",
            class_="quiet"),
        tag("div", *(tag("div", tag("b", value), what, tag("br"), tag("span", more, class_="quiet"),
                         class_="tile") for value, what, more in tiles), class_="tiles")])


def glance(facts: Facts) -> Html:
    """What stands out, in sentences."""
    total = facts["total"]
    lines: list[tuple[str, bool]] = []
    sources = sorted(facts["sources"], key=lambda entry: -entry["bytes"])
    if sources and total["bytes"]:
        first = sources[0]
        share = first["bytes"] / total["bytes"]
        lines.append((f"The largest source is {first['name']}: {percent(share)} of the text.",
                      len(sources) > 1 and share > 0.8))
    reasons = sorted(((row["documents"], stage["stage"], row["reason"], row["dead_letter"])
                      for stage in facts["funnel"] for row in stage["reasons"]), reverse=True)
    lost = total["dropped"] + total["dead_letters"]
    if reasons:
        count, stage, reason, _ = reasons[0]
        lines.append((f"{number(lost)} of {number(total['read'])} documents were not kept; the "
                      f"most frequent reason is “{reason}” ({stage}): {number(count)}, "
                      f"{percent(count, lost)} of them.", lost > 0.9 * total["read"]))
    else:
        lines.append(("Every document that was read is kept.", False))
    for entry in facts["sources"]:
        if entry["read"] and not entry["kept"]:
            lines.append((f"Nothing of source {entry['name']} was kept.", True))
        elif entry["kept"] < 0.2 * entry["read"]:
            lines.append((f"Only {percent(entry['kept'], entry['read'])} of source {entry['name']} "
                          "was kept.", True))
    languages = facts["mixture"]["language"]["rows"]
    unknown = sum(row["documents"] for row in languages if row["language"] == "und")
    if unknown:
        lines.append((f"The language of {number(unknown)} documents could not be told (und), "
                      f"{percent(unknown, total['kept'])}.", unknown > 0.1 * total["kept"]))
    licences = facts["mixture"]["licence"]["rows"]
    if licences:
        shown = ", ".join(f"{row['licence']} {percent(row['bytes'], total['bytes'])}"
                          for row in licences[:3])
        lines.append((f"Licences by share of the text: {shown}"
                      f"{' and others' if len(licences) > 3 else ''}.", False))
    near = facts["duplicates"]["near_copies"]
    if near and near["largest"]:
        lines.append((f"The largest cluster of near copies has "
                      f"{number(near['largest'][0]['documents'])} documents.", False))
    if total["dead_letters"]:
        lines.append((f"{number(total['dead_letters'])} records could not be read: "
                      f"{percent(total['dead_letters'], total['read'])}.",
                      total["dead_letters"] > 0.05 * total["read"]))
    return tag("ul", *(tag("li", text, class_="warn" if warn else None) for text, warn in lines),
               class_="glance")


def sources(facts: Facts) -> Html:
    """Files, documents and text by source."""
    total, found = facts["total"], facts["sources"]
    with_tokens = facts["tokenizer"] is not None
    # Head, cell of a source, cell of the total; numbers to the right.
    columns: list[tuple[str, Any, Any, bool]] = [
        ("source", lambda entry: entry["name"], "total", False),
        ("domain", lambda entry: entry["domain"], "", False),
        ("licence", lambda entry: entry["licence"], "", False),
        ("files", lambda entry: entry["files"], total["files"], True),
        ("MB in", lambda entry: _mb(entry["input_bytes"]), _mb(facts["inputs"]["bytes"]), True),
        ("read", lambda entry: entry["read"], total["read"], True)]
    if total["augmented"]:
        columns.append(("augmented", lambda entry: entry["augmented"], total["augmented"], True))
    columns += [
        ("kept", lambda entry: entry["kept"], total["kept"], True),
        ("dropped", lambda entry: entry["dropped"], total["dropped"], True),
        ("dead", lambda entry: entry["dead_letters"], total["dead_letters"], True),
        ("MB text", lambda entry: _mb(entry["bytes"]), _mb(total["bytes"]), True),
        ("share", lambda entry: (percent(entry["bytes"], total["bytes"]), entry["bytes"]), "",
         True)]
    if with_tokens:
        columns += [("tokens", lambda entry: entry["tokens"], total["tokens"], True),
                    ("B/token", _bytes_a_token, _bytes_a_token(total), True)]
    columns += [("median", lambda entry: entry["length"].get("median"), "", True),
                ("languages", _languages, "", False)]
    heads = [head for head, *_ in columns]
    rows = [[cell(entry) for _, cell, _, _ in columns] for entry in found]
    last = [cell for _, _, cell, _ in columns]
    numeric = [i for i, (*_, right) in enumerate(columns) if right]
    by_size = sorted(found, key=lambda entry: -entry["bytes"])
    parts: list[Content] = [
        tag("h3", "The text of the corpus by source"),
        stacked(_few([(entry["name"], entry["bytes"]) for entry in by_size if entry["bytes"]])),
        table(heads, rows, "read + augmented = kept + dropped + dead; MB: 10⁶ bytes of "
              "UTF-8; median: characters of a document", numeric, last)]
    if with_tokens:
        tokenizer = facts["tokenizer"]
        parts.append(tag("p", "Tokens are those of ", tag("code", tokenizer["sha256"][:16]),
                         f" ({number(tokenizer['vocabulary'])} pieces), BOS and EOS of each "
                         "document included.", class_="quiet"))
    return join(parts)


def _bytes_a_token(entry: Mapping[str, Any]) -> str:
    return f"{entry['bytes'] / max(1, entry['tokens']):.2f}"


def _languages(entry: Mapping[str, Any]) -> str:
    return ", ".join(list(entry["languages"])[:3]) + (" …" if len(entry["languages"]) > 3 else "")


def _few(parts: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The first ones, and the rest in one."""
    if len(parts) <= _MANY_SOURCES + 1:
        return list(parts)
    return [*parts[:_MANY_SOURCES], ("others", sum(size for _, size in parts[_MANY_SOURCES:]))]


def _mb(size: int) -> tuple[str, int]:
    return f"{size / 1e6:,.2f}", size


def funnel(facts: Facts) -> Html | None:
    """Bars by stage, and a table of all reasons."""
    read = facts["total"]["read"]
    if not read:
        return None
    cells: list[Content] = [
        tag("span", "came in"),
        tag("span", tag("span", class_="stays", style="width:100%"), class_="step"),
        tag("span", number(read), class_="count")]
    rows = []
    for stage in facts["funnel"]:
        stays, goes = (f"width:{100 * stage[key] / read:.2f}%" for key in ("left", "lost"))
        cells += [
            tag("span", stage["stage"]),
            tag("span", tag("span", class_="stays", style=stays),
                tag("span", class_="goes", style=goes), class_="step",
                title=f"{number(stage['lost'])} of {number(stage['entered'])}"),
            tag("span", f"{number(stage['left'])} left, −{number(stage['lost'])}", class_="count")]
        for row in stage["reasons"]:
            by_source = sorted(row["sources"].items(), key=lambda item: -item[1])
            rows.append((
                stage["stage"], row["reason"], row["documents"],
                (percent(row["documents"], stage["entered"]), row["documents"] / stage["entered"]),
                (bar(row["documents"] / stage["entered"], "dead" if row["dead_letter"] else "lost"),
                 row["documents"]),
                "dead letter" if row["dead_letter"] else "dropped",
                ", ".join(f"{name} {number(count)}" for name, count in by_source[:4])
                + (" …" if len(by_source) > 4 else "")))
    if facts["total"]["augmented"]:
        cells += [tag("span", "augmentation"), tag("span"), tag(
            "span", f"+{number(facts['total']['augmented'])} made", class_="count")]
    return join([
        tag("p", "Stages in the order in which documents meet them: what is left after each, and "
            "what it took away.", class_="quiet"),
        tag("div", *cells, class_="funnel"),
        table(("stage", "reason", "documents", "of those that came to it", "", "end", "by source"),
              rows, "every reason", (2, 3)) if rows else None])


def distributions(facts: Facts) -> Html | None:
    """A histogram of each measure, and its moments by source."""
    figures: list[Content] = []
    for name, found in facts["distributions"].items():
        if not found["count"]:
            continue
        title, what = _TITLES.get(name, (name, "score"))
        quantiles = found["quantiles"]
        rows = [(source, entry["count"], entry.get("median"), entry.get("mean"),
                 entry.get("maximum")) for source, entry in found["sources"].items()]
        figures.append(tag(
            "figure", tag("h3", title), tag("span", what, class_="quiet"),
            histogram(found["histogram"], found["median"], title),
            tag("figcaption", f"{number(found['count'])} documents; mean {number(found['mean'])}, "
                f"5 % below {number(quantiles['0.05'])}, 95 % below {number(quantiles['0.95'])}"
                + (f"; {number(found['not_finite'])} without a number" if found["not_finite"]
                   else "")),
            tag("details", tag("summary", "by source"), table(
                ("source", "documents", "median", "mean", "largest"), rows, title, (1, 2, 3, 4)))))
    if not figures:
        return None
    return join([tag("p", "Of the kept documents. The axis is logarithmic where a few numbers are "
                     "far larger than the rest.", class_="quiet"),
                 tag("div", *figures, class_="grid")])


def mixture(facts: Facts) -> Html | None:
    """Shares of licences, languages and domains, alone and together; splits."""
    found, size = facts["mixture"], facts["total"]["bytes"]
    if not size:
        return None
    parts: list[Content] = []
    for key in ("licence", "language", "domain"):
        rows = found[key]["rows"]
        named = [(row[key], row["bytes"]) for row in rows[:_MANY_SOURCES]]
        others = size - sum(count for _, count in named)
        parts += [tag("h3", key.capitalize()),
                  stacked(named + ([("others", others)] if others else []))]
    together = found["together"]
    tokens = ["tokens"] if facts["tokenizer"] else []
    rows = [(row["source"], row["licence"], row["language"], row["documents"],
             _mb(row["bytes"]), (percent(row["bytes"], size), row["bytes"]),
             (bar(row["bytes"] / size), row["bytes"]), *(row[key] for key in tokens))
            for row in together["rows"]]
    heads = ("source", "licence", "language", "documents", "MB of text", "share", "", *tokens)
    more = f"; {number(together['more'])} more rows are left out" if together["more"] else ""
    parts += [tag("h3", "Sources × licences × languages"),
              table(heads, rows, f"the largest first{more}", (3, 4, 5, 7))]
    splits: dict[str, dict[str, int]] = {}
    for row in facts["splits"]:
        splits.setdefault(row["source"], {})[row["split"]] = row["documents"]
    names = ("train", "validation", "test")
    rows = [(source, *(counts.get(name, 0) for name in names)) for source, counts in splits.items()]
    last = ("total", *(sum(counts.get(name, 0) for counts in splits.values()) for name in names))
    parts += [tag("h3", "Splits"), table(("source", *names), rows, "documents", (1, 2, 3), last)]
    return join(parts)


def quality(facts: Facts) -> Html | None:
    """PPL-Var and toxicity."""
    parts: list[Content] = []
    spread = facts["perplexity_variance"]
    if spread:
        rows = [("all documents", "", *_moments(spread["all"]))]
        for kind in ("sources", "languages"):
            rows += [(name, kind.removesuffix("s"), *_moments(entry))
                     for name, entry in spread[kind].items()]
        parts += [
            tag("h3", "PPL-Var"),
            tag("p", "The variance of perplexity over documents: small where they are alike, large "
                "where some are far from the clean text of the model. Perplexities of languages "
                "have different scales, so compare within one.", class_="quiet"),
            table(("of", "", "documents", "PPL-Var", "mean", "median", "largest"), rows,
                  "perplexity of the kept documents", (2, 3, 4, 5, 6))]
    toxic = facts["toxicity"]
    if toxic:
        limits = list(toxic["all"]["tails"])
        rows = [(name, entry["count"], entry["mean"], entry["median"],
                 *((percent(entry["tails"][limit]), entry["tails"][limit]) for limit in limits))
                for name, entry in [("all documents", toxic["all"]), *toxic["sources"].items()]]
        parts += [tag("h3", "Toxicity"),
                  table(("of", "documents", "mean", "median", *(f"≥ {limit}" for limit in limits)),
                        rows, "of the kept documents; the right columns are shares of documents",
                        range(1, 4 + len(limits)))]
    return join(parts) if parts else None


def _moments(found: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(found[key] for key in ("count", "variance", "mean", "median", "maximum"))


def topics(facts: Facts) -> Html | None:
    """Topics by language with their coherence."""
    parts: list[Content] = []
    for language, found in facts["topics"].items():
        rows = [(tag("span", " ".join(topic["words"]), lang=language), (
            percent(topic["share"]), topic["share"]), (bar(topic["share"]), topic["share"]),
            (f"{topic['coherence']:.3f}", topic["coherence"])) for topic in found["topics"]]
        parts += [tag("h3", f"{language}: coherence {found['coherence']:.3f}"),
                  table(("top words", "documents", "", "coherence"), rows,
                        f"{len(rows)} topics of {number(found['documents'])} documents", (1, 3))]
    if not parts:
        return None
    return join([tag(
        "p", "What a random sample of documents of each language is about. Topics by non-negative "
        "matrix factorisation; coherence is C_NPMI (Röder et al. 2015): do the top words of a "
        "topic stand near each other? 1 always, 0 as often as chance would have it, −1 never.",
        class_="quiet"), *parts])


def personal_data(facts: Facts) -> Html | None:
    """What the privacy rule found in kept documents, and what changed their texts."""
    parts: list[Content] = []
    if facts["personal_data"]:
        rows = [(row["type"], row["found"], row["documents"], ", ".join(
            f"{name} {number(count)}" for name, count in sorted(
                row["sources"].items(), key=lambda item: -item[1])[:4]))
            for row in facts["personal_data"]]
        parts += [tag("h3", "Personal data"),
                  table(("type", "found", "documents", "by source"), rows,
                        "in kept documents, before it was replaced (or left, as the recipe says)",
                        (1, 2))]
    if facts["transforms"]:
        kept = facts["total"]["kept"]
        rows = [(row["name"], row["documents"], (percent(row["documents"], kept), row["documents"]),
                 (bar(row["documents"] / kept), row["documents"])) for row in facts["transforms"]]
        parts += [tag("h3", "What changed the texts"),
                  table(("change", "documents", "of those kept", ""), rows,
                        "since the bytes that were read", (1, 2))]
    return join(parts) if parts else None


def missing(facts: Facts) -> Html | None:
    """What is not there, and how to get it."""
    lines = []
    if not facts["tokenizer"]:
        lines.append(("Tokens by source", "python -m data_beam.report --corpus=… --tokenizer=…"))
    if not facts["perplexity_variance"]:
        lines.append(("Perplexity and PPL-Var", "python -m data_beam.train_perplexity, and its "
                      "model in the recipe"))
    if "quality" not in facts["distributions"]:
        lines.append(("Quality", "python -m data_beam.train_quality, and its model in the recipe"))
    if not facts["toxicity"]:
        lines.append(("Toxicity", "a safety classifier in the recipe"))
    if facts["duplicates"]["near_copies"] is None:
        lines.append(("Near copies", "dedup.minhash.enabled in the recipe"))
    if not facts["topics"]:
        lines.append(("Topics", "at least 40 documents of one language, with spaces between words "
                      "or Chinese"))
    if not lines:
        return None
    return tag("ul", *(tag("li", tag("b", what), " needs ", how, ".") for what, how in lines))
