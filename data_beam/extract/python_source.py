"""Documentation of a Python file, read from its syntax tree; nothing is executed."""

import ast
import inspect
import warnings

from data_beam.clean.normal_form import stream_safe
from data_beam.extract.errors import ExtractionError

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _entries(node: _Documented, scope: str) -> list[str]:
    found = []
    for child in node.body:
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if child.name.startswith("_"):
            continue
        name = f"{scope}{child.name}"
        text = ast.get_docstring(child)
        if text:
            if isinstance(child, ast.ClassDef):
                heading = f"class {name}"
            else:
                heading = f"{name}({ast.unparse(child.args)})"
            found.append(f"{heading}\n\n{text.strip()}")
        if isinstance(child, ast.ClassDef):
            found.extend(_entries(child, f"{name}."))
    return found


def docstrings(source: str) -> str:
    """The module's docstring, then each public class and function: its signature and docstring.

    Raises:
      ExtractionError: the file does not parse with this Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(stream_safe(source))  # which normalises names
        module = ast.get_docstring(tree)
        entries = _entries(tree, "")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExtractionError("invalid Python", f"{type(error).__name__}: {error}") from None
    return "\n\n\n".join(([inspect.cleandoc(module).strip()] if module else []) + entries)
