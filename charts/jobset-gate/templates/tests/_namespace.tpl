{{/* Where `helm test` tries: the webhook leaves the release's own namespace alone. */}}
{{- define "jobset-gate.dry-run.namespace" -}}
{{- default (ternary "kube-public" "default" (eq .Release.Namespace "default")) .Values.tests.namespace -}}
{{- end -}}
