{{/* Names and labels that all templates use. */}}

{{- define "xenoglot.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* What never changes of a pod's labels: selectors cannot be changed. */}}
{{- define "xenoglot.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "xenoglot.labels" -}}
{{ include "xenoglot.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "xenoglot.secret" -}}
{{ .Values.secrets.existing | default (include "xenoglot.name" .) }}
{{- end -}}

{{- define "xenoglot.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "xenoglot.name" .) "default" .Values.serviceAccount.create) }}
{{- end -}}
