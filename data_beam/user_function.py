"""Functions of the user that a recipe names: `module:function`."""

import importlib
from collections.abc import Callable
from typing import Any

from maxlm.config.schema import ConfigError


def load(name: str, field: str) -> Callable[..., Any]:
    """The function that `package.module:function` names.

    The module must be importable on every worker: installed there, or in the directory that the
    command is started in.

    Args:
      name: as the user wrote it.
      field: dotted name of the setting, for messages.

    Raises:
      ConfigError: not of that form, no such module or function, or the module fails to import.
    """
    module_name, colon, function_name = name.partition(":")
    if not (module_name and colon and function_name):
        raise ConfigError(f"{field}: {name!r} must be written module:function")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{field}: {name!r}: {error}; install it where the workers run, or start "
                          "the command in its directory") from None
    except Exception as error:
        raise ConfigError(f"{field}: importing {module_name!r} failed: "
                          f"{type(error).__name__}: {error}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ConfigError(f"{field}: {module_name!r} has no function {function_name!r}")
    return function
