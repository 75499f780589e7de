{{/* Takes (list root component). With one replica it would only stand in the way of a drained node. */}}
{{- define "jobset-gate.pdb" -}}
{{- $root := index . 0 -}}
{{- $budget := $root.Values.podDisruptionBudget -}}
{{- if and $budget.enabled (gt (int (index $root.Values (index . 1)).replicaCount) 1) -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "jobset-gate.fullname" $root }}-{{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "jobset-gate.labels" . | nindent 4 }}
spec:
  {{- if not (kindIs "invalid" $budget.minAvailable) }}
  minAvailable: {{ $budget.minAvailable }}
  {{- else }}
  maxUnavailable: {{ $budget.maxUnavailable }}
  {{- end }}
  # A pod that is not ready serves nobody: it never stops a node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "jobset-gate.selector" . | nindent 6 }}
{{- end -}}
{{- end -}}
