"""Tests reading manifests from files, nested directories, URLs and kustomizations for each command."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lwsctl.cli import app
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.reading import manifests
from lwsctl.cli.reading.manifestoptions import ManifestOptions

POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n"
YAML = {"Content-Type": "application/yaml"}


@contextmanager
def served(answers: Mapping[str, tuple[int, Mapping[str, str], str]]) -> Iterator[str]:
    """Serve responses (status, headers, body) by path on the loopback address. Yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, text = answers[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None:
            """Discard log messages."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def titles(given: ManifestOptions) -> list[str]:
    return [document.title for document in given.load()]


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def test_subdirectories_are_read_when_recursive(tmp_path: Path) -> None:
    (tmp_path / "inner" / "most").mkdir(parents=True)
    (tmp_path / "a.yaml").write_text(POD.format(name="a"))
    (tmp_path / "inner" / "most" / "b.yml").write_text(POD.format(name="b"))
    assert titles(ManifestOptions((str(tmp_path),), (), recursive=False)) == ["pod/a"]
    assert titles(ManifestOptions((str(tmp_path),), (), recursive=True)) == ["pod/a", "pod/b"]
    with pytest.raises(CommandError, match=r"contains no \.yaml.* files \(use -R to read its subdirectories\)"):
        ManifestOptions((str(tmp_path / "inner"),), (), recursive=False).load()


def test_web_address_is_read_and_errors_name_it() -> None:
    answers = {
        "/a.yaml": (302, {"Location": "/moved.yaml"}, ""),
        "/moved.yaml": (200, YAML, POD.format(name="a")),
        "/bad.yaml": (200, YAML, "kind: ["),
        "/page": (200, {"Content-Type": "text/html; charset=utf-8"}, "<html>"),
        "/none": (404, YAML, ""),
    }
    with served(answers) as address:
        assert titles(ManifestOptions((f"{address}/a.yaml",), (), recursive=False)) == ["pod/a"]
        for path, message in [
            ("/bad.yaml", "/bad.yaml:2: invalid YAML"),
            ("/page", "/page is a web page; use the raw URL of the file"),
            ("/none", "/none: the server responded with 404"),
        ]:
            with pytest.raises(CommandError) as caught:
                ManifestOptions((address + path,), (), recursive=False).load()
            assert str(caught.value).startswith(address)
            assert message in str(caught.value)


def test_unreachable_server_is_a_clear_error() -> None:
    with served({}) as address:
        pass
    with pytest.raises(CommandError, match=f"{address}/a.yaml: Connection refused"):
        manifests.fetch(f"{address}/a.yaml")


def test_redirect_from_https_to_http_is_rejected() -> None:
    from email.message import Message
    from io import BytesIO
    from urllib.error import URLError
    from urllib.request import Request

    asked = Request("https://example.org/a.yaml")
    with pytest.raises(URLError, match=r"redirects to http://example\.org/b\.yaml, which is not encrypted"):
        manifests._Redirects().redirect_request(asked, BytesIO(), 302, "Found", Message(), "http://example.org/b.yaml")  # type: ignore[arg-type]


def test_kustomization_is_built_by_the_installed_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    program(tmp_path, "kubectl", '[ "$1" = kustomize ] && printf "' + POD.format(name="by-$2") + '"')
    assert titles(ManifestOptions((), ("base",), recursive=False)) == ["pod/by-base"]
    program(tmp_path, "kustomize", "echo 'no such base' >&2; exit 1")
    with pytest.raises(CommandError, match="-k base: kustomize build: no such base"):
        ManifestOptions((), ("base",), recursive=False).load()


def test_missing_kustomize_error_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match="-k base: neither kustomize nor kubectl was found in PATH"):
        ManifestOptions((), ("base",), recursive=False).load()


@pytest.mark.parametrize("command", [["apply"], ["run"]])
def test_missing_manifests_are_a_usage_error(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(command) == 2
    assert "specify manifests with -f FILE or -k DIR, or use -f - to read standard input" in capsys.readouterr().err
    with pytest.raises(UsageError):
        ManifestOptions((), (), recursive=True).load()
