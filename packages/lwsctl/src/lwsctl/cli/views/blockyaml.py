"""YAML as kubectl prints it: blocks for texts of several lines, and no line is wrapped. Pure."""

from typing import Any, Final

import yaml

from kuberuntime.manifests.yamltext import SafeDumper

WIDTH: Final = 2**30
"""A width that no line has, because wrapped lines would enlarge diffs."""


class _Dumper(SafeDumper):
    """Writes texts of several lines as blocks."""


def dump(value: Any) -> str:
    r"""Render a value, without the newline at its end.

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
