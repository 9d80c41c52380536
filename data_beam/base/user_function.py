"""Functions of the user that a recipe names: `module:function`."""

import hashlib
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maxlm.config.schema import ConfigError


def load(name: str, field: str) -> Callable[..., Any]:
    """The function that `package.module:function` names.

    The module must be importable on every worker: installed there, or in the directory that the
    command is started in. `field` is the dotted name of the setting, for messages. Raises
    ConfigError for a name of another form, no such module or function, and a module that fails to
    import.
    """
    module_name, colon, function_name = name.partition(":")
    if not (module_name and colon and function_name):
        raise ConfigError(f"{field}: {name!r} must be written module:function")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{field}: {name!r}: {error}; install it where the workers run, or start "
                          "the command in its directory") from None
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{field}: importing {module_name!r} failed: "
                          f"{type(error).__name__}: {error}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ConfigError(f"{field}: {module_name!r} has no function {function_name!r}")
    return function


def module_sha256(name: str) -> str:
    """SHA-256 of the file of the module that `package.module:function` names, without importing it
    (the packages it is in are), or "" where there is no such file: `load` says what is wrong.

    What that module imports is not in it.
    """
    try:
        spec = importlib.util.find_spec(name.partition(":")[0])
        if spec is None or not spec.has_location or spec.origin is None:
            return ""
        return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()
    except (Exception, SystemExit):  # a package runs its own code
        return ""
