"""Formats YAML as kubectl does, with blocks for multiline strings and without line wrapping. Pure."""

from typing import Any, Final

import yaml

from kuberuntime.manifests.yamltext import SafeDumper

WIDTH: Final = 2**30
"""A width that exceeds all lines. Wrapped lines would make diffs larger."""


class _Dumper(SafeDumper):
    """Writes multiline strings as blocks."""


def dump(value: Any) -> str:
    r"""Format a value without a trailing newline.

    >>> print(dump({"args": ["set -u\nexec server"]}))
    args:
    - |-
      set -u
      exec server
    """
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    return str(text).rstrip("\n")


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
