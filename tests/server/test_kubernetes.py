"""deploy/kubernetes: valid for Kubernetes, and everything that it names is there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from co_cli.cli.app import SECRETS
from co_cli.cli.parsing import make_parser
from co_cli.ground.settings import SETTINGS

DEPLOY = Path(__file__).parents[2] / "deploy"
FOLDER = DEPLOY / "kubernetes"
VERSIONS = ("1.29", "1.37")
"""The oldest and the newest that is checked."""
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="an installed package has no deploy folder")


def kustomization() -> dict[str, Any]:
    return yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))


def manifests() -> list[dict[str, Any]]:
    files = [(FOLDER / name).read_text("utf-8") for name in kustomization()["resources"]]
    return [manifest for text in files for manifest in yaml.safe_load_all(text)]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = (manifest for manifest in manifests() if manifest["kind"] == kind)
    return found


def pods() -> Iterator[tuple[dict[str, Any], dict[str, Any], set[str]]]:
    """The pod of the servers and that of a backup, each with its container and the volumes that are made for it."""
    server, job = of_kind("StatefulSet")["spec"], of_kind("CronJob")["spec"]["jobTemplate"]["spec"]
    for made, template in ((server["volumeClaimTemplates"], server["template"]), ([], job["template"])):
        (container,) = template["spec"]["containers"]
        yield template["spec"], container, {claim["metadata"]["name"] for claim in made}


def environment(container: dict[str, Any]) -> set[str]:
    shared = {entry["configMapRef"]["name"] for entry in container["envFrom"]}
    assert shared == {of_kind("ConfigMap")["metadata"]["name"]}
    return {*of_kind("ConfigMap")["data"], *(entry["name"] for entry in container["env"])}


@pytest.mark.medium
@pytest.mark.parametrize("version", VERSIONS)
def test_each_manifest_fits_the_schema_of_kubernetes(version: str) -> None:
    checker = pytest.importorskip("kubernetes_validate", reason="108 MB of schemas: pip install kubernetes-validate")
    kinds = {manifest["kind"]: checker.validate(manifest, version, strict=True) for manifest in manifests()}
    assert {"StatefulSet", "PodDisruptionBudget", "Service", "Ingress", "ConfigMap", "CronJob"} <= kinds.keys()
    wrong = of_kind("StatefulSet") | {"replicas": 2}
    with pytest.raises(checker.ValidationError):
        checker.validate(wrong, version, strict=True)


@pytest.mark.medium
@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
def test_kustomize_builds_them_with_the_image_of_the_operator() -> None:
    built = subprocess.run(["kubectl", "kustomize", str(FOLDER)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    kinds = [manifest["kind"] for manifest in yaml.safe_load_all(built.stdout)]
    assert sorted(kinds) == sorted(manifest["kind"] for manifest in manifests())
    (image,) = kustomization()["images"]
    assert {*re.findall(r"image: (\S+)", built.stdout)} == {f"{image['newName']}:{image['newTag']}"}


def test_servers_and_backups_set_only_variables_that_co_and_its_scripts_read() -> None:
    settings = {setting.environment for setting in SETTINGS}
    scripts = "".join((DEPLOY / name).read_text("utf-8") for name in ("start", "backup"))
    words = {word for _, container, _ in pods() for word in container["args"]}
    for _, container, _ in pods():
        for name in environment(container):
            is_secret = name.endswith("_FILE") and name.removesuffix("_FILE").endswith(SECRETS)
            is_read = re.search(rf"\$\{{?{name}\b", scripts)
            assert name in settings or is_secret or f"$({name})" in words or is_read or name == "HOME", name


def test_the_command_of_a_server_is_one_that_co_understands() -> None:
    server, backup = (container for _, container, _ in pods())
    words = server["args"]
    assert words[:2] == ["co", "serve"]
    options = make_parser("serve").parse_args(words[2:])
    (port,) = server["ports"]
    assert (options.host, options.port) == ("0.0.0.0", port["containerPort"])
    names = environment(server)
    assert {name for word in words for name in re.findall(r"\$\((\w+)\)", word)} <= names
    assert [(DEPLOY / backup["args"][0]).exists(), backup["args"][1:]] == [True, ["/backups"]]


def test_every_volume_port_label_and_secret_that_a_manifest_names_is_there() -> None:
    guide = (DEPLOY.parent / "docs" / "guides" / "team.md").read_text("utf-8")
    (asked,) = re.findall(r"^kubectl create secret generic (.*)$", guide, re.M)
    secret, *files = re.sub(r"--from-file=", "", asked).split()
    for pod, container, made in pods():
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert mounts.keys() == volumes.keys() | made
        assert volumes["secrets"]["secret"]["secretName"] == secret
        for entry in container["env"]:
            if entry["name"].endswith("_FILE"):
                folder, _, file = entry["value"].rpartition("/")
                assert folder == mounts["secrets"]
                assert file in (*files, "oidc-secret"), "optional: it is read only with CO_OIDC_ISSUER"
            elif entry.get("value", "").startswith("/"):
                assert any(f"{entry['value']}/".startswith(f"{place}/") for place in mounts.values()), entry
        assert container["securityContext"]["readOnlyRootFilesystem"], "so every path is in a volume"
        assert pod["securityContext"]["runAsNonRoot"]
    claims = [volume["persistentVolumeClaim"] for volume in volumes.values() if "persistentVolumeClaim" in volume]
    assert claims == [{"claimName": of_kind("PersistentVolumeClaim")["metadata"]["name"]}]

    server = of_kind("StatefulSet")["spec"]
    labels = server["template"]["metadata"]["labels"]
    (ports,) = ([port["name"] for port in container["ports"]] for container in server["template"]["spec"]["containers"])
    service, route = of_kind("Service"), of_kind("Ingress")["spec"]["rules"][0]
    assert (
        server["selector"]["matchLabels"] == of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    )
    assert service["spec"]["selector"] == labels
    assert [port["targetPort"] for port in service["spec"]["ports"]] == ports
    backend = route["http"]["paths"][0]["backend"]["service"]
    assert backend == {"name": service["metadata"]["name"], "port": {"name": ports[0]}}
    assert route["host"] == of_kind("ConfigMap")["data"]["NOTES_HOST"]
    (container,) = server["template"]["spec"]["containers"]
    probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
    assert [probe["path"] for probe in probes] == ["/livez", "/livez", "/readyz"]
    assert {probe["port"] for probe in probes} == {*ports}
