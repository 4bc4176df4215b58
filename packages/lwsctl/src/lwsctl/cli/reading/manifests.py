"""Reads manifests from files, directories, URLs and standard input, as documents with a known source.

YAML is parsed as in kubectl (`kuberuntime/manifests/yamltext.py`). Null fields are absent, and duplicate keys are
errors. All errors contain the file and the line.
"""

import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from http.client import HTTPException, HTTPMessage
from itertools import islice
from pathlib import Path
from typing import IO, Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec

import lwsctl
from kuberuntime.manifests import nesting, yamltext
from kuberuntime.manifests.fieldlines import Path as FieldPath
from kuberuntime.manifests.fieldlines import field_lines
from kuberuntime.manifests.yamltext import YamlError
from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSON, JSONObject
from lwsctl.cli.errors import CommandError, describe
from lwsctl.cli.reading import fieldlocations, templateplaceholders
from lwsctl.views.document import VERSION, VIEWS, shown_objects

SCHEMES: Final = ("https://", "http://")

PATIENCE: Final = 30.0
"""The maximum time in seconds in which the server sends no data."""

LARGEST: Final = 32 * 2**20
"""The maximum size of a manifest in bytes. Large installations do not exceed it, and it fits in memory."""


def is_url(argument: str) -> bool:
    """Return whether a command-line argument is a URL.

    >>> is_url("https://example.org/lws.yaml"), is_url("lws.yaml")
    (True, False)
    """
    return argument.lower().startswith(SCHEMES)


def fetch(address: str) -> bytes:
    """Return the content of a URL."""
    request = Request(address, headers={"User-Agent": f"lws/{lwsctl.__version__}"})  # noqa: S310 - http(s) only
    try:
        with build_opener(_Redirects).open(request, timeout=PATIENCE) as response:
            text: bytes = response.read(LARGEST + 1)
            kind = response.headers.get_content_type()
    except HTTPError as error:
        with error:
            raise CommandError(f"{address}: the server responded with {error.code} {error.reason}") from error
    except URLError as error:
        reason = error.reason
        raise CommandError(f"{address}: {describe(reason) if isinstance(reason, OSError) else reason}") from error
    except (OSError, HTTPException, ValueError) as error:  # an invalid host, or an incomplete response
        raise CommandError(f"{address}: {error}") from error
    if len(text) > LARGEST:
        raise CommandError(f"{address} exceeds the size limit of {LARGEST // 2**20} MiB")
    if kind == "text/html":
        raise CommandError(f"{address} is a web page; use the raw URL of the file")
    return text


class _Redirects(HTTPRedirectHandler):
    """Follows redirects, except from an encrypted to an unencrypted connection."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Return the request to the new URL."""
        if req.type == "https" and not newurl.lower().startswith("https://"):
            raise URLError(f"redirects to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


SUFFIXES = {".yaml", ".yml", ".json"}
KUSTOMIZATIONS = {"kustomization.yaml", "kustomization.yml", "Kustomization"}


class ManifestError(CommandError):
    """Raised if a manifest cannot be read."""


class SourceText(msgspec.Struct, frozen=True):
    """The manifest text, the index of the document in it, and the path of the object in the document."""

    text: str | bytes
    index: int
    path: FieldPath = ()

    def find_line(self, path: FieldPath) -> int | None:
        """Return the line of a field or of its nearest parent, or None if neither is in the text."""
        lines, full_path = field_lines(self.text)[self.index], (*self.path, *path)
        paths = (full_path[:length] for length in range(len(full_path), 0, -1))
        return next((lines[above] for above in paths if above in lines), None)


class Document(msgspec.Struct, frozen=True):
    """An object in a manifest, with its file and first line.

    Without an origin, the lines of its fields are unknown.
    """

    source: str
    line: int
    object: JSONObject
    origin: SourceText | None = None

    @property
    def location(self) -> str:
        """Return the location of the document for use in messages."""
        return self.field_location()

    @property
    def title(self) -> str:
        """Return `kind/name` for messages."""
        metadata = self.object["metadata"]
        return f"{self.object['kind'].lower()}/{metadata.get('name') or metadata.get('generateName', '') + '*'}"

    def field_location(self, *path: str | int) -> str:
        """Return the file and line of a field."""
        line = self.origin.find_line(path) if self.origin else None
        return f"{self.source}:{line or self.line}"

    def message(self, text: str) -> str:
        """Return a message about the object with its file, its title, and the line of the first field in it."""
        line_of = self.origin.find_line if self.origin else lambda _: None
        words, line = fieldlocations.with_line_numbers(text, self.object, line_of)
        place = f"{self.source}:{line}" if line else self.location
        return f"{place}: {self.title}: {words}"


def load(paths: Iterable[str], *, recursive: bool = False) -> list[Document]:
    """Read all documents of files, directories, URLs and `-`. Raise an error if a document cannot be read."""
    documents = [document for path in paths for document in _read(path, recursive=recursive)]
    if not documents:
        raise empty_manifests_error(paths)
    return documents


def empty_manifests_error(paths: Iterable[str]) -> ManifestError:
    """Return the error for manifests that contain no objects."""
    places = ", ".join("standard input" if path == "-" else path for path in paths)
    return ManifestError(f"no objects in {places}; a manifest requires apiVersion, kind and metadata.name")


def parse(text: str | bytes, source: str) -> list[Document]:
    """Parse the documents in a string.

    >>> [document.title for document in parse("{apiVersion: v1, kind: Pod, metadata: {name: a}}", "a.yaml")]
    ['pod/a']
    """
    return [document for part in _documents(text, source) for document in _expand(part)]


def _read(path: str, *, recursive: bool) -> Iterator[Document]:
    if path == "-":
        yield from parse(sys.stdin.buffer.read(), "standard input")
        return
    if is_url(path):
        yield from parse(fetch(path), path)
        return
    for file in _files(Path(path), recursive=recursive):
        if file.name in KUSTOMIZATIONS:
            raise ManifestError(f"{file} is a kustomization; use -k {file.parent}")
        try:
            text = file.read_bytes()
        except OSError as error:
            raise ManifestError(f"{file}: {error.strerror}") from error
        yield from parse(text, str(file))


def _files(path: Path, *, recursive: bool) -> list[Path]:
    try:
        if not stat.S_ISDIR(path.stat().st_mode):  # since Python 3.14, `is_dir` returns False for unreadable paths
            return [path]
        paths = path.rglob("*") if recursive else path.iterdir()
        files = sorted(file for file in paths if file.suffix in SUFFIXES and file.is_file())
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError if the name contains NUL
        raise ManifestError(f"{path}: no such file or directory") from error
    except OSError as error:  # an unreadable directory, or a name that is too long
        raise ManifestError(f"{path}: {error.strerror}") from error
    if not files:
        deeper = "" if recursive else " (use -R to read its subdirectories)"
        raise ManifestError(f"{path}: the directory contains no .yaml, .yml or .json files{deeper}")
    return files


def _documents(text: str | bytes, source: str) -> Iterator[Document]:
    try:
        for index, document in enumerate(yamltext.documents(text, unique_keys=True)):
            if document.value is not None:
                yield _validate(document.value, source, document.line, SourceText(text, index))
    except YamlError as error:
        value = _json_of(text, error)
        if value is not None:
            yield _validate(value, source, 1)
            return
        characters = text.decode(errors="replace") if isinstance(text, bytes) else text
        if action := templateplaceholders.find_in_text(characters, error.line):
            raise ManifestError(f"{source}:{action[0]}: {action[1]}: {templateplaceholders.REMEDY}") from error
        is_tab = "\t" in _indentation(characters, error.line)
        remedy = "; use spaces instead of tabs for indentation" if is_tab else ""
        raise ManifestError(f"{source}:{error.line}: invalid YAML: {error.problem}{remedy}") from error


def _indentation(text: str, line: int) -> str:
    """Return the indentation of a line."""
    words = next(islice(text.splitlines(), line - 1, None), "")
    return words[: len(words) - len(words.lstrip())]


def _json_of(text: str | bytes, error: YamlError) -> JSON:
    """Parse JSON with escaped surrogate pairs, which YAML does not support. Return None for all other strings."""
    if "escape" not in error.problem and "control characters" not in error.problem:
        return None
    try:
        return nesting.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _validate(value: object, source: str, line: int, origin: SourceText | None = None) -> Document:
    line = (origin.find_line(()) if origin else None) or line
    place = f"{source}:{line}"
    if not isinstance(value, dict):
        raise ManifestError(f"{place}: expected an object with apiVersion and kind, found {_kind_of(value)}")
    document = Document(source, line, value, origin)
    for field in ("apiVersion", "kind"):
        if not value.get(field):
            raise ManifestError(f"{place}: {field}: Required value: every object must have {field}")
        if not isinstance(value[field], str):
            text = f"{field}: Invalid value: {render(value[field])}: must be a string"
            raise ManifestError(f"{document.field_location(field)}: {text}")
    return document


def _expand(document: Document) -> Iterator[Document]:
    """Replace a list with its items, and output of `lws get -o view` with its objects.

    Items of a typed list, such as a LeaderWorkerSetList, may omit their kind.
    """
    obj = document.object
    if obj["kind"] == VIEWS and obj["apiVersion"] == VERSION:
        for item in shown_objects(obj):
            yield from _expand(_validate(item, document.source, document.line))
        return
    if obj["kind"].endswith("List") and "items" in obj:
        if not isinstance(obj["items"], list | None):
            raise ManifestError(
                f"{document.field_location('items')}: items: Invalid value: must be a list of objects, found {_kind_of(obj['items'])}"
            )
        for index, item in enumerate(obj["items"] or []):
            origin = document.origin and msgspec.structs.replace(
                document.origin, path=(*document.origin.path, "items", index)
            )
            yield from _expand(_validate(_with_type(item, obj), document.source, document.line, origin))
        return
    if action := templateplaceholders.find_in_object(obj):
        raise ManifestError(f"{document.field_location(*action[0])}: {action[1]}: {templateplaceholders.REMEDY}")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise ManifestError(
            f"{document.field_location('metadata')}: metadata.name: Required value: {obj['kind']} must have a name"
        )
    for field in ("name", "generateName", "namespace"):
        if not isinstance(metadata.get(field), str | None):
            raise ManifestError(
                f"{document.field_location('metadata', field)}: metadata.{field}: Invalid value: {render(metadata[field])}: must be a string; add quotes"
            )
    yield msgspec.structs.replace(document, object=_without_nulls(obj))


def _with_type(item: JSON, items_of: JSONObject) -> JSON:
    kind = items_of["kind"].removesuffix("List")
    return {"apiVersion": items_of["apiVersion"], "kind": kind} | item if kind and isinstance(item, dict) else item


def _without_nulls(value: JSON) -> JSON:
    """Return a value without null fields, at any depth. List elements are not removed.

    In `kubectl apply`, a null field is absent. Server-side apply rejects it for custom resources.

    >>> _without_nulls({"env": None, "volumes": [{"name": "a", "emptyDir": {"medium": None}}], "args": [None]})
    {'volumes': [{'name': 'a', 'emptyDir': {}}], 'args': [None]}
    """
    if isinstance(value, dict):
        return {name: _without_nulls(child) for name, child in value.items() if child is not None}
    return [_without_nulls(child) for child in value] if isinstance(value, list) else value


def _kind_of(value: object) -> str:
    return {
        dict: "an object",
        list: "a list",
        str: "a string",
        int: "a number",
        float: "a number",
        bool: "true or false",
    }.get(type(value), type(value).__name__)


FIRST: Final = (
    ("Namespace",),
    ("CustomResourceDefinition",),
    ("PriorityClass", "StorageClass", "RuntimeClass", "ResourceQuota", "LimitRange"),
    ("ServiceAccount", "Secret", "ConfigMap", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"),
    ("PersistentVolume", "PersistentVolumeClaim", "Service"),
)
LAST: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
"""Kinds whose webhooks can reject later objects while they are not running."""

RANKS: Final = {kind: rank for rank, kinds in enumerate(FIRST) for kind in kinds} | dict.fromkeys(LAST, len(FIRST) + 1)

AT_ONCE: Final = 10
"""The maximum number of documents that are applied concurrently."""


def sort_documents(documents: Sequence[Document]) -> list[Document]:
    """Return the documents in the order in which they are applied.

    Documents of equal rank are in file order.
    """
    return sorted(documents, key=_rank)


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Split ordered documents into batches that are applied concurrently.

    Batches are small, and objects do not repeat.
    """
    batch: dict[tuple[str, str], Document] = {}
    for document in documents:
        own = document.title, document.object["metadata"].get("namespace") or ""
        others = next(iter(batch.values()), document)
        if own in batch or _rank(others) != _rank(document) or len(batch) == AT_ONCE:
            yield list(batch.values())
            batch = {}
        batch[own] = document
    if batch:
        yield list(batch.values())


def _rank(document: Document) -> int:
    return RANKS.get(document.object["kind"], len(FIRST))
