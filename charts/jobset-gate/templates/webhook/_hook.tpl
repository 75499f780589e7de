{{/* The webhooks for workloads, as webhook/registration.py of the program has them; a test compares the two. */}}

{{/* The enabled sources of gangs, in the order of the program: a JSON list. `field`: the spec has a groupSchedulingConfig.
     `marks`: its pods are gated one by one, by what its pod templates say. */}}
{{- define "jobset-gate.hook-sources" -}}
{{- $table := list
  (dict "name" "jobset" "hook" "%s.jobset-gate.dev" "group" "jobset.x-k8s.io" "version" "v1alpha2" "resource" "jobsets" "field" true "marks" false)
  (dict "name" "job" "hook" "%s-jobs.jobset-gate.dev" "group" "batch" "version" "v1" "resource" "jobs" "field" false "marks" false)
  (dict "name" "lws" "hook" "%s-leaderworkersets.jobset-gate.dev" "group" "leaderworkerset.x-k8s.io" "version" "v1" "resource" "leaderworkersets" "field" false "marks" true) -}}
{{- $found := list -}}
{{- range $table -}}
{{- if has .name $.Values.gangs.sources -}}
{{- $found = append $found . -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* Takes (list source which). CEL: this version of the object has a config. */}}
{{- define "jobset-gate.has-config" -}}
{{- $which := index . 1 -}}
{{- if (index . 0).field -}}
(has({{ $which }}.spec) && {{ $which }}.spec != null && has({{ $which }}.spec.groupSchedulingConfig)) || {{ end -}}
(has({{ $which }}.metadata.annotations) && 'jobset-gate.dev/group-scheduling-config' in {{ $which }}.metadata.annotations)
{{- end -}}

{{/* Takes (list root key...). CEL: no member on this way is missing or null. */}}
{{- define "jobset-gate.are-there" -}}
{{- $place := first . -}}
{{- $parts := list -}}
{{- range rest . -}}
{{- $place = printf "%s.%s" $place . -}}
{{- $parts = append $parts (printf "has(%s) && %s != null" $place $place) -}}
{{- end -}}
{{- join " && " $parts -}}
{{- end -}}

{{/* CEL: one of the pod templates of a LeaderWorkerSet has our label, maybe copied from another one. */}}
{{- define "jobset-gate.has-mark" -}}
{{- $group := "object.spec.leaderWorkerTemplate" -}}
{{- $marks := list -}}
{{- range list "workerTemplate" "leaderTemplate" -}}
{{- $marks = append $marks (printf "(%s && 'jobset-gate.dev/gated' in %s.%s.metadata.labels)" (include "jobset-gate.are-there" (list $group . "metadata" "labels")) $group .) -}}
{{- end -}}
{{ include "jobset-gate.are-there" (list "object" "spec" "leaderWorkerTemplate") }} && ({{ join " || " $marks }})
{{- end -}}

{{/* Takes (list holder key). CEL: the label or annotation is added, removed or changed. */}}
{{- define "jobset-gate.changes" -}}
{{- $holder := index . 0 -}}
{{- $key := index . 1 -}}
{{- $new := printf "has(object.metadata.%s) && '%s' in object.metadata.%s" $holder $key $holder -}}
{{- $old := printf "has(oldObject.metadata.%s) && '%s' in oldObject.metadata.%s" $holder $key $holder -}}
(({{ $new }}) != ({{ $old }}) || (({{ $new }}) && object.metadata.{{ $holder }}['{{ $key }}'] != oldObject.metadata.{{ $holder }}['{{ $key }}']))
{{- end -}}

{{/* Takes (list root path). What all webhooks have alike: where API servers call them, and which namespaces are exempt. */}}
{{- define "jobset-gate.client-config" -}}
{{- $root := index . 0 -}}
clientConfig:
  service:
    namespace: {{ $root.Release.Namespace }}
    name: {{ include "jobset-gate.webhook.name" $root }}
    port: 443
    path: {{ index . 1 }}
admissionReviewVersions: [v1]
{{- end -}}

{{- define "jobset-gate.exempt-namespaces" -}}
namespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: {{ list "kube-system" .Release.Namespace | uniq | toJson }}
{{- end -}}

{{/*
One webhook. There is no caBundle in it: the manager of the certificate writes it, and Helm leaves alone what it has not
written. Takes (list root source verb).
*/}}
{{- define "jobset-gate.hook" -}}
{{- $root := index . 0 -}}
{{- $source := index . 1 -}}
{{- $verb := index . 2 -}}
{{- $changes := list -}}
{{- range list "group-scheduling-config" "bypass" "on-timeout" "prefetch-images" "barrier-image" -}}
{{- $changes = append $changes (include "jobset-gate.changes" (list "annotations" (printf "jobset-gate.dev/%s" .))) -}}
{{- end -}}
{{- if not (or $source.field $source.marks) -}}
{{- $changes = append $changes (include "jobset-gate.changes" (list "labels" "jobset-gate.dev/gated")) -}}
{{- end -}}
name: {{ printf $source.hook $verb }}
{{ include "jobset-gate.client-config" (list $root (printf "/%s" $verb)) }}
rules:
  - apiGroups: [{{ $source.group }}]
    apiVersions: [{{ $source.version }}]
    resources: [{{ $source.resource }}]
    operations: [CREATE, UPDATE]
    scope: Namespaced
{{ include "jobset-gate.exempt-namespaces" $root }}
# All must hold. An object without a gate is never sent, so an outage of ours touches gated ones alone.
matchConditions:
  - name: has-a-gate
    expression: >-
      {{ include "jobset-gate.has-config" (list $source "object") }} ||
      (oldObject != null && ({{ include "jobset-gate.has-config" (list $source "oldObject") }}))
      {{- if $source.marks }} ||
      ({{ include "jobset-gate.has-mark" . }})
      {{- end }}
  - name: is-not-being-deleted
    expression: >-
      !has(object.metadata.deletionTimestamp)
  - name: changes-what-matters
    expression: >-
      oldObject == null || has(object.spec) != has(oldObject.spec) ||
      (has(object.spec) && object.spec != oldObject.spec) ||
      {{ join " ||\n      " $changes }}
matchPolicy: Equivalent
failurePolicy: {{ $root.Values.webhook.failurePolicy }}
sideEffects: None
timeoutSeconds: {{ $root.Values.webhook.timeoutSeconds }}
{{- end -}}
