{{/* Parts of pods that webhook, controller and hooks share. */}}

{{- define "jobset-gate.image" -}}
{{- $image := .Values.image -}}
{{- $registry := default (.Values.global).imageRegistry $image.registry -}}
{{- $name := ternary (printf "%s/%s" $registry $image.repository) $image.repository (not (empty $registry)) -}}
{{- if $image.digest -}}
{{- $name }}{{ with $image.tag }}:{{ . }}{{ end }}@{{ $image.digest }}
{{- else -}}
{{- $name }}:{{ default .Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{/* Takes (list root component): where its pods may run, and as which user. */}}
{{- define "jobset-gate.placement" -}}
{{- include "jobset-gate.identity" . -}}
{{- $root := index . 0 -}}
{{- $its := index $root.Values (index . 1) -}}
{{- if $its.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- with $its.dnsConfig }}
dnsConfig: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $its.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $its.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- else }}
{{- if gt (int $its.replicaCount) 1 }}
# Apart by node and by zone, where there are several.
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels: {{- include "jobset-gate.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The part of it that pods of the hooks have, too. */}}
{{- define "jobset-gate.identity" -}}
{{- $root := index . 0 -}}
{{- $its := index $root.Values (index . 1) -}}
{{- with $root.Values.podSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default ($root.Values.global).imagePullSecrets $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $its.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $its.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $its.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Takes (list root component): what the component's pods carry. */}}
{{- define "jobset-gate.pod-metadata" -}}
{{- $root := index . 0 -}}
{{- $its := index $root.Values (index . 1) -}}
labels: {{- include "jobset-gate.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
  {{- with merge (dict) $its.podLabels $root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  # Settings are read at the start: other settings make other pods.
  checksum/settings: {{ include "jobset-gate.settings" $root | sha256sum }}
  {{- with $its.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Takes (dict "probe" values "path" "/healthz" "port" name "scheme" HTTP|HTTPS). */}}
{{- define "jobset-gate.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ .port }}
  scheme: {{ .scheme }}
{{- with .probe }}
{{ toYaml . }}
{{- end }}
{{- end -}}
