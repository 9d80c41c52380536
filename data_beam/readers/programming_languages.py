"""The programming language of a file, by its name."""

_EXTENSIONS = {
    "ada": "adb ads",
    "assembly": "asm s",
    "bash": "bash sh zsh",
    "c": "c h",
    "c#": "cs",
    "c++": "cc cpp cxx hh hpp hxx",
    "clojure": "clj cljs",
    "common lisp": "lisp lsp",
    "css": "css less scss",
    "cuda": "cu cuh",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "f#": "fs fsx",
    "fortran": "f f90 f95 f03 for",
    "groovy": "gradle groovy",
    "haskell": "hs",
    "javascript": "cjs js jsx mjs",
    "julia": "jl",
    "kotlin": "kt kts",
    "makefile": "mak mk",
    "matlab": "mlx",
    "objective-c": "m mm",
    "ocaml": "ml mli",
    "pascal": "pas",
    "perl": "pl pm",
    "powershell": "ps1 psm1",
    "protobuf": "proto",
    "python": "py pyi pyx",
    "ruby": "rb",
    "rust": "rs",
    "scheme": "scm",
    "solidity": "sol",
    "typescript": "cts mts ts tsx",
    "verilog": "sv svh v vh",
    "vhdl": "vhd vhdl",
    "visual basic": "vb",
}
# Languages whose only extension is their name.
_EXTENSIONS |= {name: name for name in (
    "cmake", "d", "dart", "go", "java", "lua", "nim", "php", "prolog", "r", "scala", "sql", "swift",
    "tcl", "vue", "zig")}
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
