{{/* How Prometheus asks a component. Takes (list root component monitor), the last one being the monitor's values. */}}
{{- define "jobset-gate.endpoint" -}}
{{- $root := index . 0 -}}
{{- $monitor := index . 2 -}}
path: /metrics
{{- if eq (index . 1) "controller" }}
port: metrics
scheme: http
{{- else }}
port: admission
scheme: https
tlsConfig:
  serverName: {{ include "jobset-gate.webhook.name" $root }}.{{ $root.Release.Namespace }}.svc
  ca:
    secret:
      name: {{ include "jobset-gate.ca-secret" $root }}
      key: ca.crt
{{- end }}
{{- with $monitor.interval }}
interval: {{ . }}
{{- end }}
{{- with $monitor.scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with $monitor.relabelings }}
relabelings: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $monitor.metricRelabelings }}
metricRelabelings: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The metadata of what the Prometheus operator reads. Takes (list root component name values). */}}
{{- define "jobset-gate.monitor-metadata" -}}
{{- $values := index . 3 -}}
name: {{ index . 2 }}
namespace: {{ (index . 0).Release.Namespace }}
labels: {{- include "jobset-gate.labels" . | fromYaml | merge (dict) $values.labels | toYaml | nindent 2 }}
{{- with $values.annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
