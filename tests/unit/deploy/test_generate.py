"""The generated files below `deploy/`."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.install.objects import build_all
from leaderworkerset.install.settings import Settings
from leaderworkerset.kinds.managed import MANAGED

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"


def load(path: Path) -> list[JSONObject]:
    return list(yaml.load_all(path.read_text(), yaml.CSafeLoader))


def resources(folder: Path) -> list[JSONObject]:
    """Return all objects that a kustomization gathers."""
    (kustomization,) = load(folder / "kustomization.yaml")
    found: list[JSONObject] = []
    for name in kustomization["resources"]:
        path = folder / name
        found += resources(path) if path.is_dir() else load(path)
    return found


def identity(obj: JSONObject) -> tuple[str, str, str]:
    return obj["kind"], meta.namespace(obj), meta.name(obj)


@pytest.mark.slow
def test_files_are_up_to_date() -> None:
    """`make generate` leaves no diff."""
    result = subprocess.run(
        [sys.executable, DEPLOY / "generate.py", "--check"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (result.returncode, result.stdout) == (0, ""), result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "code"), [(f"@sha256:{'0a' * 32}", 0), (":1", 1)], ids=["digest", "tag"])
def test_a_release_names_images_by_digest(tmp_path: Path, suffix: str, code: int) -> None:
    """R-OP-70."""
    images = [f"--{name}-image=registry.example.com/{name}{suffix}" for name in ("operator", "operand")]
    words = [sys.executable, str(DEPLOY / "generate.py"), "--release", str(tmp_path), *images]
    result = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == code, result.stderr
    if code:
        assert "not by digest" in result.stderr
        assert not list(tmp_path.iterdir())
    else:
        (catalog,) = [load(path) for path in tmp_path.glob("olm/catalog/lws-operator/*.yaml")]
        (bundle,) = [one for one in catalog if one["schema"] == "olm.bundle"]
        assert {f"registry.example.com/{name}{suffix}" for name in ("operator", "operand")} <= {
            one["image"] for one in bundle["relatedImages"]
        }


def test_the_base_has_what_lws_install_applies() -> None:
    installed = {identity(obj) for _, obj in build_all(MANAGED, Settings())}
    assert {identity(obj) for obj in resources(DEPLOY / "kustomize")} == installed


def test_the_component_adds_the_disruption_budget() -> None:
    more = {identity(obj) for _, obj in build_all(MANAGED, Settings(spread=True))} - {
        identity(obj) for _, obj in build_all(MANAGED, Settings())
    }
    assert {identity(obj) for obj in resources(DEPLOY / "kustomize/components/spread")} == more


def test_every_file_of_the_base_is_used() -> None:
    folder = DEPLOY / "kustomize"
    (kustomization,) = load(folder / "kustomization.yaml")
    files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert {name for name in kustomization["resources"] if name.endswith(".yaml")} == files
