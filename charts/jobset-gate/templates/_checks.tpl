{{/* What a schema cannot say: values that do not go together. */}}
{{- define "jobset-gate.checks" -}}
{{- $webhook := .Values.webhook -}}
{{- $lease := .Values.controller.leaderElection -}}
{{- if and (gt (int .Values.controller.replicaCount) 1) (not $lease.enabled) -}}
{{- fail "controller.leaderElection.enabled: false needs controller.replicaCount: 1; two leaders would both write" -}}
{{- end -}}
{{- /* What comes by --set is of another type of number than what stands in values.yaml. */ -}}
{{- $duration := float64 $lease.leaseDurationSeconds -}}
{{- $renew := float64 $lease.renewDeadlineSeconds -}}
{{- if not (and (gt $duration $renew) (gt $renew (mulf 2.0 (float64 $lease.retryPeriodSeconds)))) -}}
{{- fail "controller.leaderElection: leaseDurationSeconds must be above renewDeadlineSeconds, and that above twice retryPeriodSeconds; the controller would not start" -}}
{{- end -}}
{{- if and (include "jobset-gate.start-groups" .) (eq (int .Values.controller.patchConcurrency) 0) -}}
{{- fail "gangs.sources: startgroup needs controller.patchConcurrency above 0; without the annotation no verdict would reach pods of start groups that have no network" -}}
{{- end -}}
{{- if and (include "jobset-gate.lws" .) (eq (int .Values.controller.patchConcurrency) 0) -}}
{{- fail "gangs.sources: lws needs controller.patchConcurrency above 0; without the annotation no verdict would reach pods of LeaderWorkerSets that have no network" -}}
{{- end -}}
{{- if lt (int $webhook.terminationGracePeriodSeconds) (add 10 (int $webhook.shutdownDelaySeconds) | int) -}}
{{- fail "webhook.terminationGracePeriodSeconds must be at least webhook.shutdownDelaySeconds + 10; answers under way would be cut off" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled -}}
{{- fail "metrics: enable serviceMonitor or podMonitor, not both; everything would be counted twice" -}}
{{- end -}}
{{- if and .Values.statusPage.enabled (has (int .Values.statusPage.port) (list (int .Values.controller.port) (int .Values.stream.port))) -}}
{{- fail "statusPage.port: another than controller.port and stream.port; they are of one pod" -}}
{{- end -}}
{{- $route := .Values.statusPage.httpRoute -}}
{{- if and $route.enabled (not (include "jobset-gate.page.exposed" .)) -}}
{{- fail "statusPage.httpRoute: needs statusPage.enabled and statusPage.tlsSecretName; without a certificate the page has no Service" -}}
{{- end -}}
{{- if and $route.enabled (not $route.parentRefs) -}}
{{- fail "statusPage.httpRoute.parentRefs: name the Gateway" -}}
{{- end -}}
{{- if and $webhook.hostNetwork .Values.controller.hostNetwork (has (int $webhook.port) (list (int .Values.controller.port) (int .Values.stream.port) (int .Values.statusPage.port))) -}}
{{- fail "webhook.port: on the node's network another than the controller's ports" -}}
{{- end -}}
{{- if and (eq $webhook.certificates.mode "secret") (not $webhook.certificates.secretName) -}}
{{- fail "webhook.certificates.secretName: mode secret needs the name of a Secret with tls.crt, tls.key and ca.crt" -}}
{{- end -}}
{{- end -}}
