{{/* Labels. `labels` and `selector` take (list root component); a component of "" is the installation as a whole. */}}

{{- define "jobset-gate.selector" -}}
app.kubernetes.io/name: jobset-gate
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "jobset-gate.labels" -}}
{{- $root := index . 0 -}}
{{ include "jobset-gate.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
