"""Tests the generated files in `deploy/`."""

import json
import re
from pathlib import Path

import pytest
import yaml
from deploy import generate
from testkit.repository import ROOT

from kuberuntime.manifests.yamltext import SafeLoader
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managedkinds import MANAGED

pytestmark = pytest.mark.slow

DEPLOY = ROOT / "deploy"


def load(path: Path) -> list[JSONObject]:
    return list(yaml.load_all(path.read_text(), SafeLoader))


def resources(folder: Path) -> list[JSONObject]:
    """Return all objects in a kustomization."""
    (kustomization,) = load(folder / "kustomization.yaml")
    found: list[JSONObject] = []
    for name in kustomization["resources"]:
        path = folder / name
        found += resources(path) if path.is_dir() else load(path)
    return found


def identity(obj: JSONObject) -> tuple[str, str, str]:
    return obj["kind"], meta.namespace(obj), meta.name(obj)


@pytest.mark.slow
def test_generated_files_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """`make generate` does not change any file (R-OP-56)."""
    assert (generate.main(["--check"]), capsys.readouterr().out) == (0, "")


def images(suffix: str) -> list[str]:
    return [f"--{name}-image=registry.example.com/{name}{suffix}" for name in ("operator", "operand")]


@pytest.mark.slow
def test_release_names_images_by_digest(tmp_path: Path) -> None:
    """The bundle image is included. Its digest is known after the bundle is written, built and pushed (R-OP-70)."""
    page = (DEPLOY.parent / "docs/how-to/operator.md").read_text().replace("DIGEST", "0a" * 32)
    commands = re.findall(r"^python deploy/generate.py --release release (.*)$", page, re.MULTILINE)
    bundles, catalog = (["--release", str(tmp_path), *words.split()] for words in commands)
    assert generate.main(bundles) == 0
    assert not (tmp_path / "olm/catalog").exists()
    assert generate.main(catalog) == 0
    (path,) = tmp_path.glob("olm/catalog/*/*")
    (bundle,) = [one for one in load(path) if one["schema"] == "olm.bundle"]
    operator, pushed = (f"registry.example.com/{name}@sha256:{'0a' * 32}" for name in ("lws", "lws-bundle"))
    assert (bundle["package"], bundle["image"]) == ("leader-worker-set", pushed)
    assert {one["image"] for one in bundle["relatedImages"]} == {pushed, operator}


@pytest.mark.parametrize(
    "image", ["lws-operator=registry.example.com/pushed:1", "another=x@sha256:" + "0" * 64, "none"]
)
def test_bundle_image_without_package_or_digest_is_rejected(tmp_path: Path, image: str) -> None:
    """A bundle is identified by its package and its digest (R-OP-70)."""
    with pytest.raises(SystemExit, match=f"--bundle-image {image}: must have the form PACKAGE=NAME@DIGEST"):
        generate.main(["--release", str(tmp_path), *images("@sha256:" + "0" * 64), "--bundle-image", image])
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_release_with_an_image_tag_is_rejected(tmp_path: Path) -> None:
    """The command exits with code 1 and a message (R-OP-70)."""
    with pytest.raises(SystemExit, match="a digest is required"):
        generate.main(["--release", str(tmp_path), *images(":1")])
    assert not list(tmp_path.iterdir())


def test_olm_files_start_with_an_object() -> None:
    """Readers parse content before the first `---` as a document, even if it is a comment (R-OP-36, R-OP-38)."""
    firsts = [
        next(yaml.safe_load_all(re.sub("^#.*\n---", "---\n---", path.read_text())))
        for path in DEPLOY.glob("olm/**/*.yaml")
    ]
    assert len(firsts) >= 15
    assert None not in firsts


def test_base_has_the_objects_of_lws_install() -> None:
    """All installation methods apply the same objects (R-OP-56)."""
    installed = {identity(obj) for _, obj in build_all(MANAGED, InstallSettings())}
    assert {identity(obj) for obj in resources(DEPLOY / "kustomize")} == installed


def test_every_file_of_the_base_is_used() -> None:
    folder = DEPLOY / "kustomize"
    (kustomization,) = load(folder / "kustomization.yaml")
    files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert {name for name in kustomization["resources"] if name.endswith(".yaml")} == files


def test_operator_files_are_numbered_in_order_of_application() -> None:
    """No placeholder remains, each image is defined, and the object is applied last (R-OP-34)."""
    texts = generate.operator()
    files = [name for name in texts if not name.endswith("kustomization.yaml")]
    assert [name[9:11] for name in files] == [f"{number:02}" for number in range(len(files))]
    kinds = [name.split("_")[1] for name in files]
    assert kinds[:2] == ["customresourcedefinition", "namespace"]
    assert kinds.index("serviceaccount") < kinds.index("deployment") < kinds.index("leaderworkersetoperator")
    assert kinds[-1] == "leaderworkersetoperator"
    applied = yaml.safe_load(texts["operator/kustomization.yaml"])["resources"]
    assert [f"operator/{name}" for name in applied] == files[:-1]
    assert not re.search(r"\$\{|\bSERVICE_NAME\b|\bCERTIFICATE_NAMESPACE\b", "".join(texts.values()))


LAST_APPLIED = 256 * 1024
"""The maximum size of annotations, which limits the objects for `kubectl apply` without `--server-side`."""


def test_only_short_definitions_fit_into_an_annotation() -> None:
    """No CRD has a conversion webhook (R-OP-36, R-OP-48)."""
    for flavor, fits in (("crds", True), ("crds/full", False)):
        (definition,) = load(DEPLOY / flavor / "leaderworkersets.yaml")
        assert (len(json.dumps(definition, separators=(",", ":"))) < LAST_APPLIED) is fits
        assert "conversion" not in definition["spec"]


def test_deleting_the_release_deletes_namespace_and_definitions() -> None:
    """The file contains both, and the guide contains a warning about it (R-OP-49)."""
    assert "`kubectl delete -f deploy/manifests.yaml`" in (DEPLOY.parent / "docs/how-to/uninstall.md").read_text()
    identities = {(obj["kind"], meta.name(obj)) for obj in load(DEPLOY / "manifests.yaml")}
    assert ("Namespace", "lws-system") in identities
    assert {name for kind, name in identities if kind == "CustomResourceDefinition"} == {
        "leaderworkersets.leaderworkerset.x-k8s.io",
        "disaggregatedsets.disaggregatedset.x-k8s.io",
        "disaggregatedsetrolescalers.disaggregatedset.x-k8s.io",
    }
