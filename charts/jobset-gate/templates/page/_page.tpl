{{/* The status page is for others only with TLS: viewers send it their tokens. */}}

{{- define "jobset-gate.page.exposed" -}}
{{- if and .Values.statusPage.enabled .Values.statusPage.tlsSecretName }}true{{ end -}}
{{- end -}}

{{/* The folder in which the controller finds tls.crt and tls.key. */}}
{{- define "jobset-gate.page.certificates" -}}
/etc/jobset-gate-page
{{- end -}}
