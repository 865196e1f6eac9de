"""The driver of Kubernetes: scheduling gates are lifted for the nodes of a plan; kube-scheduler binds."""
