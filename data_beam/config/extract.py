"""Extraction of text from markup: which extractor, and what it leaves out."""

import dataclasses

from data_beam.config.checks import check_idle
from maxlm.config.schema import setting


@dataclasses.dataclass(frozen=True)
class ExtractConfig:
    """How text is extracted from HTML, PDF and EPUB, and which results are dropped."""

    html: str = setting(
        "resiliparse", "extractor of main content: resiliparse is several times faster, "
        "trafilatura leaves out more of what surrounds an article",
        choices=("resiliparse", "trafilatura"))
    advertisement_elements: bool = setting(
        True, "html: leave out elements whose class or id says that they are an advertisement, a "
        "cookie notice, share buttons, related links, a newsletter form, a sidebar or a footer")
    comments: bool = setting(False, "html: keep sections of readers' comments")
    max_link_density: float = setting(
        0.8, "html, resiliparse: a block of at least min_block_links links in which they make up a "
        "larger share of the characters is a menu and left out; 1 keeps all", minimum=0.0,
        maximum=1.0)
    min_block_links: int = setting(
        3, "html, resiliparse: a block of fewer links is never a menu", minimum=1)
    boilerplate_lines: bool = setting(
        True, "html: leave out lines that are nothing but a known marker (版权所有, 上一篇, "
        "责任编辑, share this, all rights reserved, cookie notices)")
    max_boilerplate_characters: int = setting(
        200, "html: a longer line is never a marker", minimum=1)
    repeated_edge_lines: bool = setting(
        True, "pdf: leave out running headers, footers and page numbers")
    drop_garbled_tables: bool = setting(
        True, "pdf: leave out tables whose cells do not line up in columns")
    max_scattered_fraction: float = setting(
        0.2, "pdf: a document is dropped if a larger share of its letters stand alone between "
        "spaces, as in text read across its lines; 1 keeps all", minimum=0.0, maximum=1.0)
    max_pages: int = setting(5000, "pdf: a longer file is a dead letter", minimum=1)
    max_seconds: float = setting(
        300.0, "pdf: a file that takes longer is a dead letter; far above what one needs, because "
        "it depends on the machine", above=0.0)
    max_garbled_fraction: float = setting(
        0.05, "a document with a larger share of (cid:N), U+FFFD and private-use characters is "
        "dropped; 1 keeps all", minimum=0.0, maximum=1.0)

    def check(self, path: str) -> None:
        if self.html != "resiliparse":
            check_idle(self, path, f"{path}.html is {self.html!r}", "take 'resiliparse'",
                       only=("max_link_density", "min_block_links"))
        if not self.boilerplate_lines:
            check_idle(self, path, f"{path}.boilerplate_lines is False", "set that",
                       only=("max_boilerplate_characters",))
