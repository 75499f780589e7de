{{/* What both components may ask: names, and the API server. Nobody knows its addresses beforehand. */}}
{{- define "jobset-gate.egress" -}}
{{- with .Values.networkPolicy.dnsPorts }}
- ports:
    {{- range . }}
    - port: {{ . }}
      protocol: UDP
    - port: {{ . }}
      protocol: TCP
    {{- end }}
{{- end }}
{{- with .Values.networkPolicy.apiServerPorts }}
- ports:
    {{- range . }}
    - port: {{ . }}
      protocol: TCP
    {{- end }}
{{- end }}
{{- with .Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}
