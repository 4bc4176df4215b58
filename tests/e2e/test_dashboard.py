"""Runs `lws dashboard` in a user's shell, with a browser that opens the printed link."""

import json
import re
import signal
from contextlib import closing
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from testkit.waiting import until
from tests.e2e.harness import LocalCluster, Running, Shell, line_with, lws, shell_script

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


@dataclass(frozen=True)
class Answer:
    """A complete response."""

    status: int
    headers: Message
    text: str


class Browser:
    """Opens the link that a dashboard prints, and requests pages with the cookie from its response."""

    def __init__(self, dashboard: Running) -> None:
        link = urlsplit(line_with(dashboard, "http://127.0.0.1:").rpartition(" ")[2].strip())
        self.host = link.netloc
        self.base = link.path.removesuffix("open")
        self.cookie = ""
        opened = self.ask("GET", f"open?{link.query}")
        assert opened.status == 200
        self.cookie = str(opened.headers["Set-Cookie"]).partition(";")[0]

    @classmethod
    def at(cls, host: str) -> "Browser":
        """Return a browser that must log in because it has no link."""
        browser = cls.__new__(cls)
        browser.host, browser.base, browser.cookie = host, "/", ""
        return browser

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        """Return the response to a request."""
        with closing(HTTPConnection(self.host, timeout=60)) as connection:
            own = {"Cookie": self.cookie} if self.cookie else {}
            connection.request(method, self.base + path, body=body, headers=own | headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())

    def wait(self, path: str, words: bytes) -> None:
        """Read a stream until it contains these strings."""
        with closing(HTTPConnection(self.host, timeout=60)) as connection:
            connection.request("GET", self.base + path, headers={"Cookie": self.cookie})
            with closing(connection.getresponse()) as response:
                while line := response.readline():
                    if words in line:
                        return
        raise AssertionError(f"the stream ended without {words!r}")

    def text(self, path: str = "") -> str:
        """Return a page."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.text
        return answer.text


def test_dashboard_shows_the_explanation_and_the_logs(cluster: LocalCluster) -> None:
    cluster.apply(lws("dash", shell_script("echo '<b>bold</b> words'; echo out of luck >&2; exit 3"), restart="None"))
    with cluster.shell.running("dashboard", f"--local={cluster.name}", "--no-browser") as dashboard:
        browser = Browser(dashboard)
        browser.wait("stream?key=1&of=sets/default/dash", b"LWS-E071")
        assert "LWS-E071" in browser.text()
        for line in (b'"<b>bold</b> words"', b'"out of luck"'):
            browser.wait("stream?key=1&of=logs/sets/default/dash?rank=0/0", line)
        masked = "&lt;b&gt;bold&lt;/b&gt; words"
        until(lambda: masked in browser.text("pane/default/dash/0/0"), "the lines in the page")
        link = 'href="sets/default/dash/history/0/1"'  # the recorder writes the episode after it has found the cause
        until(lambda: link in browser.text("sets/default/dash/history"), "the failure in the history")
        assert "out of luck" in browser.text("sets/default/dash/history/0/1")
        dashboard.send_signal(signal.SIGINT)
        assert dashboard.wait(timeout=30) == 0


def test_actions_equal_the_command_that_they_show(cluster: LocalCluster) -> None:
    cluster.start(lws("acted", shell_script("sleep 3600", grace=1)))
    with cluster.shell.running("dashboard", f"--local={cluster.name}", "--no-browser", "--allow-actions") as dashboard:
        browser = Browser(dashboard)
        token = re.findall('data-action="([^"]+)"', browser.text("sets/default/acted"))[0]
        own = {"X-Dashboard-Token": token, "Origin": f"http://{browser.host}"}
        asked = {"verb": "scale", "namespace": "default", "name": "acted", "groups": "2", "confirmed": False}
        trial = json.loads(browser.ask("POST", "act", json.dumps(asked), **own).text)
        assert (trial["done"], trial["text"]) == (True, "acted scaled from 1 to 2 groups (dry run)\n")
        assert trial["command"] == f"lws --local={cluster.name} -n default scale acted --replicas 2"
        done = json.loads(browser.ask("POST", "act", json.dumps(asked | {"confirmed": True}), **own).text)
        assert done["text"] == "acted scaled from 1 to 2 groups\n"
        asked = {"verb": "restart", "namespace": "default", "name": "acted"}
        plan = json.loads(browser.ask("POST", "act", json.dumps(asked), **own).text)
        assert "+++ acted, then" in plan["text"]
        missing = json.loads(browser.ask("POST", "act", json.dumps(asked | {"name": "nobody"}), **own).text)
        assert not missing["done"]
        assert "nobody" in missing["text"]
        assert cluster.lws("get", "acted", "-o", "jsonpath={.spec.replicas}") == "2"


def test_shared_dashboard_acts_with_the_token_of_its_user(cluster: LocalCluster) -> None:
    cluster.start(lws("shared", shell_script("sleep 3600", grace=1)))
    place = cluster.shell.state / cluster.name / "kubeconfig"
    token = re.findall(r"token: (\S+)", place.read_text())[0].strip('"')
    words = ("dashboard", f"--local={cluster.name}", "--listen", "127.0.0.1", "--allow-actions", "--no-browser")
    with cluster.shell.running(*words) as dashboard:
        host = line_with(dashboard, "listening on ").partition("listening on ")[2].partition(". ")[0]
        browser = Browser.at(host)
        own = {"Origin": f"http://{host}", "Content-Type": "application/x-www-form-urlencoded"}
        assert browser.ask("GET", "healthz").text == "ok\n"
        assert browser.ask("GET", "").status == 401
        assert browser.ask("POST", "login", "token=wrong", **own).status == 403
        entered = browser.ask("POST", "login", urlencode({"token": token}), **own)
        assert entered.status == 303, entered.text
        browser.cookie = str(entered.headers["Set-Cookie"]).partition(";")[0]
        action = re.findall('data-action="([^"]+)"', browser.text("sets/default/shared"))[0]
        asked = {"verb": "scale", "namespace": "default", "name": "shared", "groups": "2", "confirmed": True}
        headers = {"X-Dashboard-Token": action, "Origin": f"http://{host}"}
        assert json.loads(browser.ask("POST", "act", json.dumps(asked), **headers).text)["done"]
        assert cluster.lws("get", "shared", "-o", "jsonpath={.spec.replicas}") == "2"
        dashboard.send_signal(signal.SIGTERM)
        assert dashboard.wait(timeout=30) == 0


@pytest.mark.parametrize("deletes", [False, True])
def test_dashboard_outlives_its_cluster(shell: Shell, deletes: bool) -> None:
    """The same link opens the cluster after `lws down` and `lws up`, even if the port changes."""
    shell.lws("up", "comes", "--detach")
    cluster = LocalCluster(shell, "comes")
    cluster.start(lws("first", shell_script("sleep 3600", grace=1)))
    with shell.running("dashboard", "--local=comes", "--no-browser") as dashboard:
        browser = Browser(dashboard)
        assert "first" in browser.text()
        shell.lws("down", "comes", *(["--delete"] if deletes else []))
        browser.wait("stream?key=1&of=", b"does not respond")
        shell.lws("up", "comes", "--detach")
        cluster.start(lws("second", shell_script("sleep 3600", grace=1)))
        browser.wait("stream?key=1&of=sets/default/second", b"1 of 1 group ready")
        until(lambda: "does not respond" not in browser.text(), "the end of the notice")
        assert ('id="s/default/first"' in browser.text()) is not deletes
        dashboard.send_signal(signal.SIGINT)
        assert dashboard.wait(timeout=30) == 0


def test_page_is_saved_as_one_file(cluster: LocalCluster, tmp_path: Path) -> None:
    cluster.start(lws("saved", shell_script("sleep 3600", grace=1)))
    for words in (["--export", "saved"], ["--export"]):
        text = cluster.lws("dashboard", *words)
        assert text.startswith("<!doctype html>")
        assert "saved" in text
        assert "<script" not in text
        assert "src=" not in text
        assert "href=" not in text
    assert "nobody" in cluster.refused("dashboard", "--export", "nobody")
    assert "cannot be combined" in cluster.refused("dashboard", "--export", "saved", "--allow-actions", code=2)
