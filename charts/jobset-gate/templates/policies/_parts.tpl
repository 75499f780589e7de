{{/* Parts of the admission policies, which hold our own accounts to what RBAC has no words for. */}}

{{/* Not empty: there are policies. auto: where the API server has their kind; `helm template` asks none, and each from
     Kubernetes 1.30 on has it. An upgrade with --reuse-values from a chart without the value is auto as well. */}}
{{- define "jobset-gate.policies" -}}
{{- $asked := .Capabilities.APIVersions.Has "v1/Pod" -}}
{{- $there := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy" -}}
{{- $wanted := dig "enabled" "auto" (default dict .Values.admissionPolicies) -}}
{{- if ternary (or $there (not $asked)) $wanted (eq (toString $wanted) "auto") -}}
on
{{- end -}}
{{- end -}}

{{/* Takes (list root component subject): the name of a policy and of its binding. */}}
{{- define "jobset-gate.policy-name" -}}
{{ include "jobset-gate.fullname" (index . 0) }}-{{ index . 1 }}{{ with index . 2 }}-{{ . }}{{ end }}
{{- end -}}

{{/* Takes the same. The head of a policy, up to its spec. */}}
{{- define "jobset-gate.policy-head" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ include "jobset-gate.policy-name" . }}
  labels: {{- include "jobset-gate.labels" (list (index . 0) (index . 1)) | nindent 4 }}
{{- end -}}

{{/* Takes the same. The account that a policy binds, and what an error in it leads to: it refuses. */}}
{{- define "jobset-gate.policy-account" -}}
failurePolicy: Fail
matchConditions:
  - name: the-{{ index . 1 }}
    expression: request.userInfo.username == 'system:serviceaccount:{{ (index . 0).Release.Namespace }}:{{ include "jobset-gate.account" . }}'
{{- end -}}

{{/* Takes the same. */}}
{{- define "jobset-gate.policy-binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ include "jobset-gate.policy-name" . }}
  labels: {{- include "jobset-gate.labels" (list (index . 0) (index . 1)) | nindent 4 }}
spec:
  policyName: {{ include "jobset-gate.policy-name" . }}
  validationActions: [Deny]
{{- end -}}

{{/* Takes (list new old keys), each an expression: two maps are the same but for these keys. dyn, since the API server's
     checker of types takes no object for a map. */}}
{{- define "jobset-gate.same" -}}
{{- $new := index . 0 -}}
{{- $old := index . 1 -}}
{{- $keys := index . 2 -}}
dyn({{ $new }}).all(key, key in {{ $keys }} || (key in dyn({{ $old }}) && dyn({{ $new }})[key] == dyn({{ $old }})[key])) && dyn({{ $old }}).all(key, key in {{ $keys }} || key in dyn({{ $new }}))
{{- end -}}

{{/* Takes such a list of keys: object and oldObject have the same metadata but for these, and for what the API server changes itself. */}}
{{- define "jobset-gate.same-metadata" -}}
{{ include "jobset-gate.same" (list "object.metadata" "oldObject.metadata" (printf "(['managedFields', 'generation', 'resourceVersion'] + %s)" .)) }}
{{- end -}}

{{/* Takes (list labels-or-annotations keys): those of object and oldObject are the same but for these. */}}
{{- define "jobset-gate.same-notes" -}}
{{- $what := index . 0 -}}
{{ include "jobset-gate.same" (list (printf "object.metadata.?%s.orValue({})" $what) (printf "oldObject.metadata.?%s.orValue({})" $what) (index . 1)) }}
{{- end -}}

{{/* Takes the type of a condition: the status has the same conditions, but for that one. */}}
{{- define "jobset-gate.same-conditions" -}}
dyn(object).?status.?conditions.orValue([]).filter(one, one.type != '{{ . }}') == dyn(oldObject).?status.?conditions.orValue([]).filter(one, one.type != '{{ . }}')
{{- end -}}
