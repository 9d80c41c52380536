"""Config files that tests write."""

from pathlib import Path

GOOD = """
from maxlm.config import Config, RunConfig
def get_config():
    return Config(run=RunConfig(steps=500)).to_config_dict()
"""


def write(folder: Path, text: str, name: str = "mine.py") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)
