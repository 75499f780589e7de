{{/* The certificate of the webhook: own, certManager or secret. */}}

{{/* The Secret that is mounted, for the modes that have one. */}}
{{- define "jobset-gate.certificate-secret" -}}
{{- $its := .Values.webhook.certificates -}}
{{- ternary (printf "%s-tls" (include "jobset-gate.webhook.name" .)) $its.secretName (eq $its.mode "certManager") -}}
{{- end -}}

{{- define "jobset-gate.certificate-args" -}}
{{- $its := .Values.webhook.certificates -}}
{{- if eq $its.mode "own" -}}
- --own-ca={{ include "jobset-gate.fullname" . }}-ca
- --ca-days={{ divf (include "jobset-gate.hours" $its.caDuration) 24.0 | printf "%g" }}
- --leaf-hours={{ include "jobset-gate.hours" $its.leafDuration }}
{{- else -}}
- --tls-cert=/etc/jobset-gate-tls/tls.crt
- --tls-key=/etc/jobset-gate-tls/tls.key
{{- if eq $its.mode "secret" }}
- --tls-ca=/etc/jobset-gate-tls/ca.crt
- --publish-ca
{{- else }}
- --check-trust
{{- end }}
{{- end -}}
{{- end -}}

{{/* Takes a duration as 8760h, 90m or 1h30m0s: the hours. */}}
{{- define "jobset-gate.hours" -}}
{{- $hours := 0.0 -}}
{{- range $unit, $each := dict "h" 1.0 "m" 60.0 "s" 3600.0 -}}
{{- with regexFind (printf "[0-9]+%s" $unit) $ -}}
{{- $hours = addf $hours (divf (trimSuffix $unit . | float64) $each) -}}
{{- end -}}
{{- end -}}
{{- printf "%g" $hours -}}
{{- end -}}

{{/* Where the certificate of the CA lies, for clients of the webhook. */}}
{{- define "jobset-gate.ca-secret" -}}
{{- $own := printf "%s-ca" (include "jobset-gate.fullname" .) -}}
{{- ternary $own (include "jobset-gate.certificate-secret" .) (eq .Values.webhook.certificates.mode "own") -}}
{{- end -}}

{{/* From which Certificate cert-manager is to publish the CA; "" where others do. */}}
{{- define "jobset-gate.trust" -}}
{{- if eq .Values.webhook.certificates.mode "certManager" -}}
{{- printf "%s/%s" .Release.Namespace (include "jobset-gate.webhook.name" .) -}}
{{- end -}}
{{- end -}}
