{{/* The settings file of webhook and controller. */}}

{{- define "jobset-gate.stream.url" -}}
http://{{ include "jobset-gate.fullname" . }}-stream.{{ .Release.Namespace }}.svc:{{ .Values.stream.port }}
{{- end -}}

{{/* Each key is written, null included: Helm drops values that are set to null, and the program has defaults. */}}
{{- define "jobset-gate.settings" -}}
{{- $barrier := .Values.barrier -}}
{{- $lease := .Values.controller.leaderElection -}}
{{- $groups := .Values.groups -}}
{{- $certificates := include "jobset-gate.page.certificates" . -}}
{{- $tls := not (empty (include "jobset-gate.page.exposed" .)) -}}
{{- $ours := ternary (include "jobset-gate.stream.url" .) nil .Values.stream.enabled -}}
barrier:
  image: {{ $barrier.image | toJson }}
  resources: {{ $barrier.resources | toJson }}
  runAsUser: {{ $barrier.runAsUser | toJson }}
  runAsGroup: {{ $barrier.runAsGroup | toJson }}
  graceSeconds: {{ $barrier.graceSeconds | toJson }}
  maxWaitSeconds: {{ $barrier.maxWaitSeconds | toJson }}
  pollSeconds: {{ $barrier.pollSeconds | toJson }}
  streamUrl: {{ default $ours $barrier.streamUrl | toJson }}
gangs:
  sources: {{ .Values.gangs.sources | toJson }}
  {{- if include "jobset-gate.gates-pods" . }}
  podFailurePolicy: {{ include "jobset-gate.pod-failure-policy" . }}
  {{- end }}
groups:
  enabled: {{ $groups.enabled }}
  ways: {{ $groups.ways | toJson }}
  schedulerNames: {{ $groups.schedulerNames | toJson }}
  capacityCheck: {{ include "jobset-gate.word" $groups.capacityCheck | toJson }}
  starvationSeconds: {{ $groups.starvationSeconds | toJson }}
  waitSeconds: {{ $groups.waitSeconds | toJson }}
  acrossNamespaces: {{ $groups.acrossNamespaces }}
  native: {{ include "jobset-gate.word" $groups.native | toJson }}
  gateConcurrency: {{ $groups.gateConcurrency | toJson }}
controller:
  workers: {{ .Values.controller.workers | toJson }}
  patchConcurrency: {{ .Values.controller.patchConcurrency | toJson }}
  progressEvery: {{ .Values.controller.progressSeconds | toJson }}
  extendCrd: {{ .Values.crds.extendJobSet }}
  podGroupCrds: {{ .Values.crds.podGroups }}
  streamHost: {{ .Values.listenAddress | toJson }}
  streamPort: {{ ternary (int .Values.stream.port) nil .Values.stream.enabled | toJson }}
  pagePort: {{ ternary (int .Values.statusPage.port) 0 .Values.statusPage.enabled | toJson }}
  pageAddress: {{ ternary .Values.listenAddress "127.0.0.1" $tls | toJson }}
  pageTlsCert: {{ ternary (printf "%s/tls.crt" $certificates) nil $tls | toJson }}
  pageTlsKey: {{ ternary (printf "%s/tls.key" $certificates) nil $tls | toJson }}
  pagePrices: {{ .Values.statusPage.prices | toJson }}
  tracing: {{ .Values.tracing.enabled }}
  tracingEndpoint: {{ default nil .Values.tracing.endpoint | toJson }}
  leaseDuration: {{ $lease.leaseDurationSeconds | toJson }}
  renewDeadline: {{ $lease.renewDeadlineSeconds | toJson }}
  retry: {{ $lease.retryPeriodSeconds | toJson }}
{{- end -}}

{{/* On and Off are booleans where they have no quotes. */}}
{{- define "jobset-gate.word" -}}
{{- get (dict "true" "On" "false" "Off") (toString .) | default (toString .) -}}
{{- end -}}
