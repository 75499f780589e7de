{{/* Names of what the chart makes. Each template is given the root context. */}}

{{/* At most 52 characters, so that the longest suffix of a Service or label, "-controller", still fits into 63. */}}
{{- define "jobset-gate.fullname" -}}
{{- $name := default "jobset-gate" .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "jobset-gate.webhook.name" -}}
{{ include "jobset-gate.fullname" . }}-webhook
{{- end -}}

{{- define "jobset-gate.controller.name" -}}
{{ include "jobset-gate.fullname" . }}-controller
{{- end -}}

{{/* Takes (list root component): the ServiceAccount of the component's pods. */}}
{{- define "jobset-gate.account" -}}
{{- $root := index . 0 -}}
{{- $account := (index $root.Values (index . 1)).serviceAccount -}}
{{- $ours := ternary (printf "%s-%s" (include "jobset-gate.fullname" $root) (index . 1)) "default" $account.create -}}
{{- default $ours $account.name -}}
{{- end -}}

{{/* Of the throw-away objects of the hooks. */}}
{{- define "jobset-gate.field-removal.name" -}}
{{ include "jobset-gate.fullname" . }}-crd-field
{{- end -}}

{{- define "jobset-gate.dry-run.name" -}}
{{ include "jobset-gate.fullname" . }}-dry-run
{{- end -}}

{{- define "jobset-gate.ungate.name" -}}
{{ include "jobset-gate.fullname" . }}-ungate
{{- end -}}
