"""The programming language of a file, by its name."""

from data_beam.base import word_lists

_NAMES = {"cmakelists.txt": "cmake", "dockerfile": "dockerfile", "gnumakefile": "makefile",
          "makefile": "makefile", "rakefile": "ruby"}
_COMPRESSIONS = (".bz2", ".gz", ".zst")
_LANGUAGE = {
    extension: language for language, extensions in word_lists.read(
        "data_beam.readers", "programming_languages.txt").items() for extension in extensions}


def language_of(path: str) -> str:
    """Lower-case name of the language a file is written in, "" when its name does not tell.

    `.h` is C and `.m` Objective-C: what the name leaves open is settled, not guessed by content.
    """
    name = path.rpartition("/")[2].lower()
    for suffix in _COMPRESSIONS:
        name = name.removesuffix(suffix)
    stem, dot, extension = name.rpartition(".")
    return _NAMES.get(name) or (_LANGUAGE.get(extension, "") if stem and dot else "")
