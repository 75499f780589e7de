{{/* What the controller may do for pod groups, by the ways that are on. */}}

{{/* The API groups of the PodGroups that are looked for. */}}
{{- define "jobset-gate.pod-group-apis" -}}
{{- $ways := .Values.groups.ways -}}
{{- $apis := list -}}
{{- if has "kep-24" $ways -}}
{{- $apis = append $apis "incubator.scheduling.k8s.io" -}}
{{- end -}}
{{- if or (has "scheduler-plugins" $ways) (has "koordinator-podgroup" $ways) -}}
{{- $apis = append $apis "scheduling.x-k8s.io" -}}
{{- end -}}
{{- if has "koordinator-podgroup" $ways -}}
{{- $apis = append $apis "scheduling.sigs.k8s.io" -}}
{{- end -}}
{{- toJson $apis -}}
{{- end -}}

{{- define "jobset-gate.group-rules" -}}
{{- $groups := .Values.groups -}}
{{- $apis := include "jobset-gate.pod-group-apis" . | fromJsonArray -}}
{{- $crds := list -}}
{{- $kinds := dict "kep-24" "incubator.scheduling.k8s.io" "scheduler-plugins" "scheduling.x-k8s.io" "koordinator-podgroup" "scheduling.sigs.k8s.io" -}}
{{- range $way, $api := $kinds -}}
{{- if has $way $groups.ways -}}
{{- $crds = append $crds (printf "podgroups.%s" $api) -}}
{{- end -}}
{{- end -}}
# Gates are removed by a patch; members of a group that missed its limit are marked, released or deleted. One that
# cannot be patched is looked at: it may be gone, and another of its name there.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, patch, delete]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
# What makes the members: is it able to make enough of them, and may it be suspended?
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, patch]
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [patch]
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [get]
- apiGroups: [""]
  resources: [replicationcontrollers]
  verbs: [get]
# Why a group waits, on the ConfigMap of one that has no PodGroup.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [patch]
{{- if ne (include "jobset-gate.word" $groups.capacityCheck) "Off" }}
# Where there is room.
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
{{- end }}
{{- if has "kep-24" $groups.ways }}
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
{{- end }}
{{- if $apis }}
# The groups, what was decided of them, and how far they are.
- apiGroups: {{ toJson $apis }}
  resources: [podgroups]
  verbs: [get, list, watch, patch]
- apiGroups: {{ toJson $apis }}
  resources: [podgroups/status]
  verbs: [patch]
{{- end }}
{{- if $crds }}
# Their kinds: which fields their status has{{ if .Values.crds.podGroups }}; made, where nobody else has brought them, by server-side apply, which
# may be limited to names{{ end }}.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: {{ toJson $crds }}
  verbs: {{ ternary (list "get" "list" "watch" "create" "patch") (list "get") .Values.crds.podGroups | toJson }}
{{- end }}
{{- if eq (include "jobset-gate.word" $groups.native) "On" }}
# The scheduler's own groups.
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [get, create, patch, delete]
{{- end }}
{{- end -}}
