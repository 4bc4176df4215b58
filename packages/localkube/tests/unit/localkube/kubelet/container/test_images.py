"""Tests the container command if no image is pulled."""

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.kubeletpods import container, pod

from localkube.kubelet.container import images
from localkube.kubelet.container.images import ProgramSource, SearchPath, UnrunnableError

HOST = ProgramSource("host://")
SEARCHED = SearchPath("/usr/bin:/bin")


def directory(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).mkdir(parents=True)
    return root


def test_image_is_mapped_with_or_without_its_tag(tmp_path: Path) -> None:
    venv = directory(tmp_path, "bin")
    expected = ProgramSource(f"environment://{venv}", environment=venv)
    assert images.find_source("vllm:v1", {"vllm:v1": venv}) == expected
    assert images.find_source("vllm:v1", {"vllm": venv}) == expected
    assert images.find_source("vllm@sha256:0", {"vllm": venv}) == expected
    assert images.find_source("other:v1", {"vllm": venv}) == HOST


def test_directory_with_etc_is_a_root_unless_an_environment(tmp_path: Path) -> None:
    root = directory(tmp_path / "root", "etc", "usr/bin")
    conda = directory(tmp_path / "conda", "etc", "bin", "conda-meta")
    assert images.find_source("a", {"a": root}).root == root
    assert images.find_source("a", {"a": conda}).environment == conda


def test_other_directory_is_a_folder_with_its_environment(tmp_path: Path) -> None:
    plain = images.find_source("a", {"a": tmp_path})
    assert (plain.folder, plain.environment) == (tmp_path, None)
    (tmp_path / ".venv").mkdir()
    assert images.find_source("a", {"a": tmp_path}).environment == tmp_path / ".venv"


def test_missing_directory_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnrunnableError, match="which is not an existing directory"):
        images.find_source("a", {"a": tmp_path / "no"})


@pytest.mark.parametrize("name", ["vllm:1:2", "org/Server", "a b", "vllm@sha256:0", ":1"])
def test_name_that_no_runtime_parses_is_rejected(name: str) -> None:
    with pytest.raises(UnrunnableError, match="couldn't parse image name") as refused:
        images.check_name(name)
    assert refused.value.reason == "InvalidImageName"


@pytest.mark.parametrize("name", ["host", "registry:5000/org/server:v0.1_a", f"a.b/c__d@sha256:{'0a' * 32}"])
def test_name_that_runtimes_parse_is_accepted(name: str) -> None:
    images.check_name(name)


def test_container_without_command_is_rejected_with_advice(tmp_path: Path) -> None:
    with pytest.raises(UnrunnableError, match=r"--image vllm=DIR, .* --stub") as caught:
        images.check_command("vllm:v1", ["serve"], has_command=False, place=HOST)
    assert caught.value.reason == "ImageNotMapped"
    with pytest.raises(UnrunnableError, match="Set the command of the container"):
        images.check_command("vllm:v1", [], has_command=False, place=ProgramSource("x", root=tmp_path))
    images.check_command("vllm:v1", ["serve"], has_command=True, place=HOST)


@pytest.mark.parametrize("program", ["sh", "/bin/sh", "./relative", "/scripts/run.sh", "/scripts"])
def test_existing_or_mounted_program_is_accepted(program: str) -> None:
    images.check_program("a", program, "/usr/bin:/bin", HOST, ["/scripts/"])


@pytest.mark.parametrize("program", ["no-such-program", "/no/such/program", "/scripts-2/run.sh"])
def test_missing_program_is_named(program: str) -> None:
    with pytest.raises(UnrunnableError, match=f'"{program}" is not installed on this machine') as caught:
        images.check_program("a:1", program, "/usr/bin:/bin", HOST, ["/scripts"])
    assert caught.value.reason == "ProgramNotFound"


@pytest.mark.parametrize(
    ("script", "missing"),
    [("bash /opt/no-such.sh; ls", "/opt/no-such.sh"), ("cd /tmp && no-such-server --port 80", "no-such-server")],
)
def test_script_with_a_missing_program_is_rejected(script: str, missing: str) -> None:
    with pytest.raises(UnrunnableError, match=f'"{missing}"'):
        images.check_script("a:1", ["sh", "-c", script], HOST, SEARCHED)


def test_file_for_an_interpreter_must_exist_or_be_mounted() -> None:
    with pytest.raises(UnrunnableError, match=r'file "/opt/server\.py" of image a:1 does not exist on this machine'):
        images.check_script("a:1", ["python3", "/opt/server.py", "--port=1"], HOST, SEARCHED)
    images.check_script("a:1", ["python3", "/opt/server.py"], HOST, replace(SEARCHED, mounted=["/opt"]))


def test_a_working_directory_has_to_be_there_or_mounted(tmp_path: Path) -> None:
    with pytest.raises(
        UnrunnableError, match=r'working directory "/opt/no-such" does not exist on this machine.*--image a=DIR'
    ):
        images.check_directory("a:1", "/opt/no-such", HOST, [])
    images.check_directory("a:1", "/opt/no-such/deep", HOST, ["/opt/no-such"])
    images.check_directory("a:1", str(tmp_path), HOST, [])
    (tmp_path / "work").mkdir()
    images.check_directory("a:1", "/work", ProgramSource("root:///r", root=tmp_path), [])


@pytest.mark.parametrize("argv", [["python3", "-u", "./server.py", "--pp=2"], ["./serve", "--port=1"]], ids=" ".join)
def test_a_relative_file_is_looked_for_in_the_working_directory(argv: list[str], tmp_path: Path) -> None:
    here = replace(SEARCHED, directory=str(tmp_path))
    with pytest.raises(UnrunnableError, match=r"of image a:1 does not exist on this machine"):
        images.check_script("a:1", argv, HOST, here)
    images.check_script("a:1", argv, HOST, replace(here, mounted=[str(tmp_path)]))
    (tmp_path / "server.py").touch()
    (tmp_path / "serve").touch()
    images.check_script("a:1", argv, HOST, here)


def test_python_package_must_be_installed() -> None:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    images.check_module("a:1", ["python3", "-m", "http.server"], path)
    images.check_module("a:1", ["python3", "-m", "no_such_engine"], "/no/such/path")
    with pytest.raises(UnrunnableError, match='Python package "no_such_engine" of image a:1 is not installed'):
        images.check_module("a:1", ["sh", "-c", "cd /; python3 -m no_such_engine.server"], path)


def test_script_with_existing_programs_is_accepted() -> None:
    script = "bash /scripts/run.sh; cat /etc/hosts | grep x"
    images.check_script("a:1", ["sh", "-c", script], HOST, replace(SEARCHED, mounted=["/scripts"]))


def test_program_of_a_root_is_searched_in_it(tmp_path: Path) -> None:
    root = directory(tmp_path, "bin")
    (root / "bin" / "serve").symlink_to("/bin/serve.real")
    place = ProgramSource("x", root=root)
    images.check_program("a", "serve", "/usr/bin:/bin", place, [])
    with pytest.raises(UnrunnableError, match=f'^image a is mapped to {root}, which does not contain program "sh"$'):
        images.check_program("a", "sh", "/usr/bin:/bin", place, [])


def test_misspelled_program_of_a_mapped_image_has_a_suggestion(tmp_path: Path) -> None:
    programs = directory(tmp_path, "bin") / "bin"
    (programs / "serve-model").touch()
    place, path = ProgramSource("x", environment=tmp_path), f"{programs}:/usr/bin:/bin"
    with pytest.raises(UnrunnableError) as caught:
        images.check_program("team:1", "serve-modle", path, place, [])
    told = f'image team:1 is mapped to {tmp_path}, which does not contain program "serve-modle", and neither does this machine'
    assert str(caught.value) == f"{told} (did you mean serve-model?)"


def test_misspelled_program_of_the_host_has_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "python3").touch()
    with pytest.raises(UnrunnableError) as caught:
        images.check_program("host", "pyhton3", str(tmp_path), HOST, [])
    told = (
        'program "pyhton3" is not installed on this machine (did you mean python3?). Install it, or correct the command'
    )
    assert str(caught.value) == told


def test_stub_answers_on_declared_and_probed_ports() -> None:
    main = container(
        image="vllm:v1",
        ports=[{"containerPort": 8000, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}],
        readinessProbe={"httpGet": {"port": "http"}},
        livenessProbe={"tcpSocket": {"port": 9000}},
        startupProbe={"exec": {"command": ["x"]}},
    )
    assert images.stub_command(pod(main), main, "why") == ((), (8000, 9000))


def test_stub_of_an_init_container_exits_immediately() -> None:
    init = container("init", image="tool:v1")
    assert images.stub_command(pod(initContainers=[init]), init, "why")[0][0] == "/bin/sh"
    sidecar = container("proxy", restartPolicy="Always")
    assert images.stub_command(pod(initContainers=[sidecar]), sidecar, "why")[0] == ()
