{{/*
Who a hook's Job is and what it may. Takes (list root event name rules), the rules as YAML. They come with the hook and
go with it; with rbac.create=false they are yours to give, as all others.
*/}}
{{- define "jobset-gate.hook-access" -}}
{{- $root := index . 0 -}}
{{- $name := index . 2 -}}
{{- $labels := include "jobset-gate.labels" (list $root "") -}}
{{- $hook := include "jobset-gate.hook-annotations" (list $root (index . 1) 0) -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- $labels | nindent 4 }}
  annotations: {{- $hook | nindent 4 }}
automountServiceAccountToken: false
{{- if $root.Values.rbac.create }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels: {{- $labels | nindent 4 }}
  annotations: {{- $hook | nindent 4 }}
rules: {{- index . 3 | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- $labels | nindent 4 }}
  annotations: {{- $hook | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- end -}}

{{/* The Job of a hook, one container of our image. Takes (list root event name container), the container's own part as YAML. */}}
{{- define "jobset-gate.hook-job" -}}
{{- $root := index . 0 -}}
{{- $name := index . 2 -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "jobset-gate.labels" (list $root "") | nindent 4 }}
  annotations: {{- include "jobset-gate.hook-annotations" (list $root (index . 1) 1) | nindent 4 }}
spec:
  backoffLimit: 3
  activeDeadlineSeconds: 240
  ttlSecondsAfterFinished: 3600
  template:
    metadata:
      labels: {{- include "jobset-gate.labels" (list $root "") | nindent 8 }}
    spec:
      {{- include "jobset-gate.hook-pod" (list $root $name) | nindent 6 }}
      containers:
        - {{ index . 3 | nindent 10 | trim }}
          {{- include "jobset-gate.hook-container" $root | nindent 10 }}
{{- end -}}
