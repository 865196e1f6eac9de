"""
What a cluster needs for the driver, and for kube-scheduler to ask placeopt; built through the client's models.

``python -m placeopt.drivers.kubernetes.manifests driver|extender`` prints them as YAML. docs/manifests/ holds what it
prints; a test compares.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from placeopt.drivers.kubernetes.api import Object
from placeopt.drivers.kubernetes.kinds import CORE, OPTIONAL
from placeopt.drivers.kubernetes.lease import NAME as LEASE

NAME = "placeopt"
IMAGE = "placeopt:latest"
"""Of your own making: there is no published image."""
EXTENDER_URL = "http://127.0.0.1:8080/k8s"
VERBS = ("get", "list", "watch")


def driver_manifests(namespace: str = NAME, image: str = IMAGE) -> list[Object]:
    """
    Return namespace, service account, rights, and a Deployment of the driver with a spare one.

    Rights: to list and watch what a round looks at; to patch and evict pods; on the one Lease. The right to create a
    Lease cannot be limited to a name.
    """
    from kubernetes import client

    labels = {"app.kubernetes.io/name": NAME}
    rules = [client.V1PolicyRule(api_groups=[""], resources=_plurals(), verbs=list(VERBS))]
    for group, plural, _ in OPTIONAL:
        rules.append(client.V1PolicyRule(api_groups=[group], resources=[plural], verbs=list(VERBS)))
    rules += [
        client.V1PolicyRule(api_groups=[""], resources=["pods"], verbs=["patch"]),
        client.V1PolicyRule(api_groups=[""], resources=["pods/eviction"], verbs=["create"]),
    ]
    lease_rules = [
        client.V1PolicyRule(api_groups=["coordination.k8s.io"], resources=["leases"], verbs=["create"]),
        client.V1PolicyRule(
            api_groups=["coordination.k8s.io"],
            resources=["leases"],
            resource_names=[LEASE],
            verbs=["get", "update"],
        ),
    ]
    account = client.RbacV1Subject(kind="ServiceAccount", name=NAME, namespace=namespace)
    meta = client.V1ObjectMeta(name=NAME, labels=labels)
    inside = client.V1ObjectMeta(name=NAME, namespace=namespace, labels=labels)
    group = "rbac.authorization.k8s.io"
    return [
        _written(one)
        for one in (
            client.V1Namespace(api_version="v1", kind="Namespace", metadata=client.V1ObjectMeta(name=namespace)),
            client.V1ServiceAccount(api_version="v1", kind="ServiceAccount", metadata=inside),
            client.V1ClusterRole(api_version=f"{group}/v1", kind="ClusterRole", metadata=meta, rules=rules),
            client.V1ClusterRoleBinding(
                api_version=f"{group}/v1",
                kind="ClusterRoleBinding",
                metadata=meta,
                role_ref=client.V1RoleRef(api_group=group, kind="ClusterRole", name=NAME),
                subjects=[account],
            ),
            client.V1Role(api_version=f"{group}/v1", kind="Role", metadata=inside, rules=lease_rules),
            client.V1RoleBinding(
                api_version=f"{group}/v1",
                kind="RoleBinding",
                metadata=inside,
                role_ref=client.V1RoleRef(api_group=group, kind="Role", name=NAME),
                subjects=[account],
            ),
            client.V1Deployment(
                api_version="apps/v1",
                kind="Deployment",
                metadata=inside,
                spec=client.V1DeploymentSpec(
                    replicas=2,  # one is active, by the Lease
                    selector=client.V1LabelSelector(match_labels=labels),
                    template=client.V1PodTemplateSpec(
                        metadata=client.V1ObjectMeta(labels=labels), spec=_driver_pod(image)
                    ),
                ),
            ),
        )
    ]


def _driver_pod(image: str) -> Any:
    from kubernetes import client

    requests = {"cpu": "1", "memory": "1Gi"}
    return client.V1PodSpec(
        service_account_name=NAME,
        security_context=client.V1PodSecurityContext(
            run_as_non_root=True, seccomp_profile=client.V1SeccompProfile(type="RuntimeDefault")
        ),
        containers=[
            client.V1Container(
                name=NAME,
                image=image,
                args=["kubernetes", "run", "--every", "15s", "--json"],
                resources=client.V1ResourceRequirements(requests=requests, limits={"memory": "4Gi"}),
                security_context=client.V1SecurityContext(
                    allow_privilege_escalation=False, capabilities=client.V1Capabilities(drop=["ALL"])
                ),
            )
        ],
    )


def extender_configuration(url: str = EXTENDER_URL, resource: str = "nvidia.com/gpu") -> Object:
    """
    Return kube-scheduler's configuration for asking the extender of ``placeopt serve``; it is not an object of the API.

    Fields: ``Extender`` in config/v1/types.go of kubernetes/kube-scheduler. kube-scheduler goes on counting the
    resource, and pods that request it are not bound while the extender does not answer. There is no ``bindVerb``:
    kube-scheduler would leave Bindings to the command, which creates none, so that no pod would ever start.
    """
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"},
        "extenders": [
            {
                "urlPrefix": url,
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "preemptVerb": "preempt",
                "weight": 1,
                "enableHTTPS": False,
                "httpTimeout": "5s",
                "nodeCacheCapable": True,
                "managedResources": [{"name": resource, "ignoredByScheduler": False}],
                "ignorable": False,
            }
        ],
    }


def as_yaml(objects: Sequence[Object]) -> str:
    """Return objects as YAML documents."""
    import yaml

    return str(yaml.safe_dump_all(objects, sort_keys=False, width=1000))


def _plurals() -> list[str]:
    return [kind.path.rpartition("/")[2] for kind in CORE]


def _written(model: Any) -> Object:
    from kubernetes import client

    found: Object = client.ApiClient().sanitize_for_serialization(model)
    return found


if __name__ == "__main__":
    sys.stdout.write(as_yaml(driver_manifests() if sys.argv[1:] == ["driver"] else [extender_configuration()]))
