{{/* Parts of the hooks' pods: one container, of our image. */}}

{{/* Takes (list root hook weight). Everything of a hook goes when all of it has worked; what failed stays to be read. */}}
{{- define "jobset-gate.hook-annotations" -}}
helm.sh/hook: {{ index . 1 }}
helm.sh/hook-weight: {{ index . 2 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* Takes (list root account). What stands before the containers. */}}
{{- define "jobset-gate.hook-pod" -}}
{{- $root := index . 0 -}}
serviceAccountName: {{ index . 1 }}
automountServiceAccountToken: true
enableServiceLinks: false
restartPolicy: Never
{{ include "jobset-gate.identity" (list $root "webhook") | trim }}
{{- end -}}

{{/* What each such container has. */}}
{{- define "jobset-gate.hook-container" -}}
image: {{ include "jobset-gate.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
resources:
  requests:
    cpu: 50m
    memory: 96Mi
  limits:
    memory: 256Mi
{{- with .Values.securityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
