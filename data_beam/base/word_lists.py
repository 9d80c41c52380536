"""The word lists of data_beam, in text files beside the modules that use them."""

import importlib.resources


def read(package: str, name: str) -> dict[str, list[str]]:
    """The lists in a file of a package, by their headings.

    A list begins with its heading and a colon at the start of a line. Further lines of it are
    indented. Entries are separated by commas; a line that begins with `# ` is a comment.
    """
    lists: dict[str, list[str]] = {}
    heading = ""
    text = importlib.resources.files(package).joinpath(name).read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line or line.startswith("# "):
            continue
        if not line.startswith(" "):
            heading, _, line = line.partition(":")
        lists.setdefault(heading, []).extend(filter(None, map(str.strip, line.split(","))))
    return lists
