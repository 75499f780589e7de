{{/* The webhooks for single pods, as webhook/registration.py of the program has them; a test compares the two. */}}

{{/* By which key each way names a group, labels and annotations apart, in the order of the program. */}}
{{- define "jobset-gate.group-keys" -}}
labels:
  koordinator-podgroup: pod-group.scheduling.sigs.k8s.io
  scheduler-plugins: scheduling.x-k8s.io/pod-group
  alibaba: pod-group.scheduling.sigs.k8s.io/name
annotations:
  koordinator-annotations: gang.scheduling.koordinator.sh/name
  kep-24: scheduling.k8s.io/group-name
{{- end -}}

{{/* CEL: the pod has a key of one of the ways that are on. */}}
{{- define "jobset-gate.names-a-group" -}}
{{- $keys := include "jobset-gate.group-keys" . | fromYaml -}}
{{- $order := list "koordinator-annotations" "koordinator-podgroup" "scheduler-plugins" "alibaba" "kep-24" -}}
{{- $parts := list -}}
{{- range $holder := list "labels" "annotations" -}}
{{- $place := printf "object.metadata.%s" $holder -}}
{{- $matches := list -}}
{{- range $order -}}
{{- $key := get (index $keys $holder) . -}}
{{- if and $key (has . $.Values.groups.ways) -}}
{{- $matches = append $matches (printf "'%s' in %s" $key $place) -}}
{{- end -}}
{{- end -}}
{{- if $matches -}}
{{- $parts = append $parts (printf "(has(%s) && (%s))" $place (join " || " $matches)) -}}
{{- end -}}
{{- end -}}
{{- join " || " $parts -}}
{{- end -}}

{{- define "jobset-gate.pod-rules" -}}
rules:
  - apiGroups: [""]
    apiVersions: [v1]
    resources: [pods]
    operations: [CREATE]
    scope: Namespaced
{{- end -}}

{{- define "jobset-gate.is-no-mirror" -}}
- name: is-no-mirror
  expression: >-
    !has(object.metadata.annotations) || !('kubernetes.io/config.mirror' in object.metadata.annotations)
{{- end -}}

{{- define "jobset-gate.pod-hook" -}}
name: pods.jobset-gate.dev
{{ include "jobset-gate.client-config" (list . "/mutate-pods") }}
{{ include "jobset-gate.pod-rules" . }}
{{ include "jobset-gate.exempt-namespaces" . }}
# All must hold. A pod that names no group ends at the first, so an outage of ours touches pods of groups alone.
matchConditions:
  - name: names-a-group
    expression: >-
      {{ include "jobset-gate.names-a-group" . }}
  - name: is-for-our-scheduler
    expression: >-
      !has(object.spec.schedulerName) || object.spec.schedulerName in ['{{ join "', '" .Values.groups.schedulerNames }}']
  - name: is-not-bound
    expression: >-
      !has(object.spec.nodeName) || object.spec.nodeName == ''
  {{ include "jobset-gate.is-no-mirror" . | nindent 2 | trim }}
  - name: is-no-daemon
    expression: >-
      !has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(it, it.kind == 'DaemonSet' && has(it.controller) && it.controller)
  - name: has-no-native-group
    expression: >-
      !has(object.spec.schedulingGroup)
matchPolicy: Equivalent
failurePolicy: {{ .Values.webhook.failurePolicy }}
sideEffects: None
timeoutSeconds: {{ .Values.webhook.timeoutSeconds }}
reinvocationPolicy: IfNeeded
{{- end -}}

{{/* Not empty: start groups are on. */}}
{{- define "jobset-gate.start-groups" -}}
{{- if has "startgroup" .Values.gangs.sources -}}
on
{{- end -}}
{{- end -}}

{{/* Not empty: groups of LeaderWorkerSets are gangs. */}}
{{- define "jobset-gate.lws" -}}
{{- if has "lws" .Values.gangs.sources -}}
on
{{- end -}}
{{- end -}}

{{/* Not empty: there are pods that get a barrier of their own. */}}
{{- define "jobset-gate.gates-pods" -}}
{{- include "jobset-gate.lws" . -}}
{{- include "jobset-gate.start-groups" . -}}
{{- end -}}

{{/* An upgrade with --reuse-values from a chart that did not know the value has none. */}}
{{- define "jobset-gate.pod-failure-policy" -}}
{{- default "Fail" .Values.gangs.podFailurePolicy -}}
{{- end -}}

{{/* Takes (list root source): one webhook for pods that get a barrier of their own. */}}
{{- define "jobset-gate.barrier-pod-hook" -}}
{{- $root := index . 0 -}}
{{- $lws := eq (index . 1) "lws" -}}
name: {{ ternary "leaderworkerset-pods" "start-groups" $lws }}.jobset-gate.dev
{{ include "jobset-gate.client-config" (list $root "/mutate-barrier-pods") }}
{{ include "jobset-gate.pod-rules" $root }}
{{ include "jobset-gate.exempt-namespaces" $root }}
{{- if $lws }}
# A pod without the label is never sent; it comes from the template of a LeaderWorkerSet with a config.
objectSelector:
  matchExpressions:
    - key: jobset-gate.dev/gated
      operator: In
      values: [lws]
{{- else }}
# A pod without the label is never sent, and none that already waits at the barrier of its JobSet or Job.
objectSelector:
  matchExpressions:
    - key: jobset-gate.dev/start-group
      operator: Exists
    - key: jobset-gate.dev/gated
      operator: NotIn
      values: ["true", job]
{{- end }}
matchConditions:
  {{ include "jobset-gate.is-no-mirror" $root | nindent 2 | trim }}
matchPolicy: Equivalent
failurePolicy: {{ include "jobset-gate.pod-failure-policy" $root }}
sideEffects: None
timeoutSeconds: {{ $root.Values.webhook.timeoutSeconds }}
reinvocationPolicy: IfNeeded
{{- end -}}
