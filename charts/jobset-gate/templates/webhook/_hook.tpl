{{/*
One webhook of ours, as webhook/registration.py of the program has it; a test compares the two. There is no caBundle in it:
the manager of the certificate writes it, and Helm leaves alone what it has not written.
Takes (list root name path).
*/}}
{{- define "jobset-gate.hook" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
clientConfig:
  service:
    namespace: {{ $root.Release.Namespace }}
    name: {{ include "jobset-gate.webhook.name" $root }}
    port: 443
    path: {{ index . 2 }}
admissionReviewVersions: [v1]
rules:
  - apiGroups: [jobset.x-k8s.io]
    apiVersions: [v1alpha2]
    resources: [jobsets]
    operations: [CREATE, UPDATE]
    scope: Namespaced
namespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: {{ list "kube-system" $root.Release.Namespace | uniq | toJson }}
# All must hold. A JobSet without a gate is never sent, so an outage of ours touches gated JobSets alone.
matchConditions:
  - name: has-a-gate
    expression: >-
      (has(object.spec) && object.spec != null && has(object.spec.groupSchedulingConfig)) ||
      (has(object.metadata.annotations) && 'jobset-gate.dev/group-scheduling-config' in object.metadata.annotations) ||
      (oldObject != null && ((has(oldObject.spec) && oldObject.spec != null && has(oldObject.spec.groupSchedulingConfig)) ||
      (has(oldObject.metadata.annotations) && 'jobset-gate.dev/group-scheduling-config' in oldObject.metadata.annotations)))
  - name: is-not-being-deleted
    expression: >-
      !has(object.metadata.deletionTimestamp)
  - name: changes-what-matters
    expression: >-
      oldObject == null || has(object.spec) != has(oldObject.spec) ||
      (has(object.spec) && object.spec != oldObject.spec) ||
      ((has(object.metadata.annotations) && 'jobset-gate.dev/group-scheduling-config' in object.metadata.annotations) != (has(oldObject.metadata.annotations) && 'jobset-gate.dev/group-scheduling-config' in oldObject.metadata.annotations) ||
      ((has(object.metadata.annotations) && 'jobset-gate.dev/group-scheduling-config' in object.metadata.annotations) && object.metadata.annotations['jobset-gate.dev/group-scheduling-config'] != oldObject.metadata.annotations['jobset-gate.dev/group-scheduling-config'])) ||
      ((has(object.metadata.annotations) && 'jobset-gate.dev/bypass' in object.metadata.annotations) != (has(oldObject.metadata.annotations) && 'jobset-gate.dev/bypass' in oldObject.metadata.annotations) ||
      ((has(object.metadata.annotations) && 'jobset-gate.dev/bypass' in object.metadata.annotations) && object.metadata.annotations['jobset-gate.dev/bypass'] != oldObject.metadata.annotations['jobset-gate.dev/bypass'])) ||
      ((has(object.metadata.annotations) && 'jobset-gate.dev/on-timeout' in object.metadata.annotations) != (has(oldObject.metadata.annotations) && 'jobset-gate.dev/on-timeout' in oldObject.metadata.annotations) ||
      ((has(object.metadata.annotations) && 'jobset-gate.dev/on-timeout' in object.metadata.annotations) && object.metadata.annotations['jobset-gate.dev/on-timeout'] != oldObject.metadata.annotations['jobset-gate.dev/on-timeout'])) ||
      ((has(object.metadata.annotations) && 'jobset-gate.dev/prefetch-images' in object.metadata.annotations) != (has(oldObject.metadata.annotations) && 'jobset-gate.dev/prefetch-images' in oldObject.metadata.annotations) ||
      ((has(object.metadata.annotations) && 'jobset-gate.dev/prefetch-images' in object.metadata.annotations) && object.metadata.annotations['jobset-gate.dev/prefetch-images'] != oldObject.metadata.annotations['jobset-gate.dev/prefetch-images'])) ||
      ((has(object.metadata.annotations) && 'jobset-gate.dev/barrier-image' in object.metadata.annotations) != (has(oldObject.metadata.annotations) && 'jobset-gate.dev/barrier-image' in oldObject.metadata.annotations) ||
      ((has(object.metadata.annotations) && 'jobset-gate.dev/barrier-image' in object.metadata.annotations) && object.metadata.annotations['jobset-gate.dev/barrier-image'] != oldObject.metadata.annotations['jobset-gate.dev/barrier-image']))
matchPolicy: Equivalent
failurePolicy: {{ $root.Values.webhook.failurePolicy }}
sideEffects: None
timeoutSeconds: {{ $root.Values.webhook.timeoutSeconds }}
{{- end -}}
