"""Formats manifests as YAML, for the files in `deploy/` and for `lws install -o yaml`."""

from collections.abc import Iterable, Sequence

import yaml

from kuberuntime.manifests.yamltext import SafeDumper
from kuberuntime.objects.meta import JSONObject


class Dumper(SafeDumper):
    """Writes shared values without anchors, because some tools require this, and multi-line strings as blocks."""

    def ignore_aliases(self, data: object) -> bool:
        """Return True, so that values are written without anchors."""
        del data
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Write a multi-line string as a block."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if text.endswith("\n") else None)


Dumper.add_representer(str, Dumper.represent_text)


def document(obj: JSONObject | Sequence[JSONObject], *, sort_keys: bool = True) -> str:
    """Return the YAML of one object, or of a list."""
    return str(yaml.dump(obj, Dumper=Dumper, sort_keys=sort_keys, width=120, allow_unicode=True))


def documents(objects: Iterable[JSONObject]) -> str:
    """Return the YAML of objects as separate documents with sorted keys."""
    return "".join(f"---\n{document(obj)}" for obj in objects)
