"""Kubernetes: a round from the objects of a cluster, as ``kubectl get -o json`` lists them."""
