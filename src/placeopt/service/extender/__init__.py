"""
The extender protocol of kube-scheduler, version 1, on an engine.

Types and field names are those of ``k8s.io/kube-scheduler/extender/v1`` (types.go, read at e87dbddd); when and how they
are sent stands in ``pkg/scheduler/extender.go`` of kubernetes/kubernetes: field names without JSON tags, so
``NodeNames``; a status other than 200 is an error whose body is not read; a filtered node must be among those sent.
"""

from placeopt.service.extender.arguments import BindingArgs
from placeopt.service.extender.extender import Extender

__all__ = ["BindingArgs", "Extender"]
