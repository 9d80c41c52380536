"""report.html: the facts as one page that needs nothing else, neither a network nor a server.

Texts of documents are anybody's: everything is escaped by `markup`, and the page itself forbids
whatever it does not bring along (Content-Security-Policy), should something slip through.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from data_beam.reporting import samples, sections
from data_beam.reporting.markup import Html, join, tag
from data_beam.reporting.style import CSS, SCRIPT

_SECTIONS = (
    ("glance", "At a glance", sections.glance),
    ("sources", "What came in", sections.sources),
    ("funnel", "What was dropped, and why", sections.funnel),
    ("dropped", "Dropped documents", samples.dropped),
    ("kept", "Kept documents", samples.kept),
    ("distributions", "Distributions", sections.distributions),
    ("duplicates", "Copies", samples.duplicates),
    ("mixture", "Mixture", sections.mixture),
    ("quality", "Quality", sections.quality),
    ("topics", "Topics", sections.topics),
    ("data", "Personal data and repairs", sections.personal_data),
    ("missing", "Not measured", sections.missing),
)


def render(facts: Mapping[str, Any]) -> str:
    """The page of the facts that `facts.make` made."""
    made = [(name, title, content) for name, title, section in _SECTIONS
            if (content := section(facts))]
    script = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    head = tag(
        "head", tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=(
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
            f"script-src 'sha256-{script}'")),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", "Corpus report"), tag("style", Html(CSS)))
    links = tag("ul", *(tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in made))
    body = tag(
        "body", tag("a", "To the content", href="#content", class_="skip"),
        tag("header", tag("div", tag("h1", "Corpus report"), sections.heading(facts))),
        tag("nav", tag("div", links), aria_label="Sections"),
        tag("main", *(tag("section", tag("h2", title), content, id=name)
                      for name, title, content in made), _footer(facts), id="content"),
        tag("script", Html(SCRIPT)))
    return Html("<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n")


def _footer(facts: Mapping[str, Any]) -> Html:
    versions = ", ".join(f"{name} {version}" for name, version in facts["libraries"].items())
    return tag("footer", tag("p", join([
        "Made by data_beam from the finished corpus; the same numbers are in report.json. Recipe ",
        tag("code", facts["recipe_sha256"][:16]), f". Libraries: {versions}."])))
