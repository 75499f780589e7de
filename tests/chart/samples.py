"""Sets of values that together switch on everything the chart can do."""

from typing import Any, Final

from tests.chart.helm import Json

_PLACED: Final[Json] = {
    "extraArgs": ["--log-level=debug"],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "podAnnotations": {"example.com/note": "x"},
    "podLabels": {"team": "ml"},
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}]
            }
        }
    },
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
    "priorityClassName": "system-cluster-critical",
    "resources": {"requests": {"cpu": 1, "memory": "1Gi"}},
    "serviceAccount": {"create": True, "annotations": {"example.com/role": "r"}},
}
_EXTRA: Final[list[Any]] = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-extra"}, "data": {"a": "b"}},
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-text\n",
]

SAMPLES: Final[dict[str, Json]] = {
    "defaults": {},
    "bare": {
        "webhook": {"replicaCount": 1},
        "controller": {"replicaCount": 1, "leaderElection": {"enabled": False}},
        "stream": {"enabled": False},
        "groups": {"enabled": False},
        "crds": {"extendJobSet": False},
        "rbac": {"create": False},
        "podDisruptionBudget": {"enabled": False},
        "tests": {"enabled": False},
    },
    "cert-manager": {
        "webhook": {"certificates": {"mode": "certManager"}},
        "metrics": {"serviceMonitor": {"enabled": True}},
    },
    "labels-only": {"groups": {"ways": ["alibaba"], "capacityCheck": "Off"}, "statusPage": {"enabled": True}},
    "issuer": {
        "webhook": {"certificates": {"mode": "certManager", "issuerRef": {"name": "corp", "kind": "ClusterIssuer"}}}
    },
    "jobsets alone": {"gangs": {"sources": ["jobset"]}},
    "start groups": {
        "gangs": {"sources": ["jobset", "job", "startgroup"], "podFailurePolicy": "Ignore"},
        "webhook": {"certificates": {"mode": "certManager"}},
    },
    "groups of LeaderWorkerSets": {"gangs": {"sources": ["jobset", "lws"]}},
    "every source": {"gangs": {"sources": ["jobset", "job", "lws", "startgroup"]}},
    "brought": {
        "webhook": {"certificates": {"mode": "secret", "secretName": "webhook-tls"}},
        "metrics": {"podMonitor": {"enabled": True}},
    },
    "everything": {
        "global": {"imageRegistry": "registry.example", "imagePullSecrets": [{"name": "pull"}]},
        "commonLabels": {"cost": "42"},
        "image": {"digest": "sha256:" + "a" * 64},
        "webhook": _PLACED,
        "controller": _PLACED,
        "barrier": {"resources": {"limits": {"cpu": "10m", "memory": "16Mi"}}, "runAsUser": None, "maxWaitSeconds": 60},
        "groups": {"native": "On", "capacityCheck": "Probe", "schedulerNames": ["default-scheduler", "another"]},
        "crds": {"keep": False},
        "statusPage": {"enabled": True, "tlsSecretName": "page-tls"},
        "tracing": {"enabled": True, "endpoint": "http://otel.monitoring.svc:4318"},
        "metrics": {
            "serviceMonitor": {
                "enabled": True,
                "interval": "15s",
                "scrapeTimeout": "5s",
                "labels": {"release": "prometheus"},
                "annotations": {"a": "b"},
                "relabelings": [{"action": "labeldrop", "regex": "pod"}],
                "metricRelabelings": [{"action": "drop", "sourceLabels": ["__name__"], "regex": "python_.*"}],
            },
            "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
            "dashboards": {"enabled": True, "annotations": {"folder": "ML"}},
        },
        "networkPolicy": {
            "enabled": True,
            "extraIngress": [{"ports": [{"port": 9999, "protocol": "TCP"}]}],
            "extraEgress": [{"ports": [{"port": 4317, "protocol": "TCP"}]}],
        },
        "extraObjects": _EXTRA,
    },
}
