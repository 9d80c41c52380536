"""The programming language of a file, by its name."""

_EXTENSIONS = {
    "ada": "adb ads",
    "assembly": "asm s",
    "bash": "bash sh zsh",
    "c": "c h",
    "c#": "cs",
    "c++": "cc cpp cxx hh hpp hxx",
    "clojure": "clj cljs",
    "cmake": "cmake",
    "common lisp": "lisp lsp",
    "css": "css less scss",
    "cuda": "cu cuh",
    "d": "d",
    "dart": "dart",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "f#": "fs fsx",
    "fortran": "f f90 f95 f03 for",
    "go": "go",
    "groovy": "gradle groovy",
    "haskell": "hs",
    "java": "java",
    "javascript": "cjs js jsx mjs",
    "julia": "jl",
    "kotlin": "kt kts",
    "lua": "lua",
    "makefile": "mak mk",
    "matlab": "mlx",
    "nim": "nim",
    "objective-c": "m mm",
    "ocaml": "ml mli",
    "pascal": "pas",
    "perl": "pl pm",
    "php": "php",
    "powershell": "ps1 psm1",
    "prolog": "prolog",
    "protobuf": "proto",
    "python": "py pyi pyx",
    "r": "r",
    "ruby": "rb",
    "rust": "rs",
    "scala": "scala",
    "scheme": "scm",
    "solidity": "sol",
    "sql": "sql",
    "swift": "swift",
    "tcl": "tcl",
    "typescript": "cts mts ts tsx",
    "verilog": "sv svh v vh",
    "vhdl": "vhd vhdl",
    "visual basic": "vb",
    "vue": "vue",
    "zig": "zig",
}
_NAMES = {"cmakelists.txt": "cmake", "dockerfile": "dockerfile", "gnumakefile": "makefile",
          "makefile": "makefile", "rakefile": "ruby"}
_COMPRESSIONS = (".bz2", ".gz", ".zst")
_LANGUAGE = {extension: language
             for language, extensions in _EXTENSIONS.items() for extension in extensions.split()}


def language_of(path: str) -> str:
    """Lower-case name of the language a file is written in, "" when its name does not tell.

    `.h` is C and `.m` Objective-C: what the name leaves open is settled, not guessed by content.
    """
    name = path.rpartition("/")[2].lower()
    for suffix in _COMPRESSIONS:
        name = name.removesuffix(suffix)
    stem, dot, extension = name.rpartition(".")
    return _NAMES.get(name) or (_LANGUAGE.get(extension, "") if stem and dot else "")
