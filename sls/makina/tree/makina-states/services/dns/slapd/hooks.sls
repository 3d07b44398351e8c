{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['slapd-pre-install', 'slapd-post-install', 'slapd-pre-conf', 'slapd-post-conf', 'slapd-check-conf', 'slapd-pre-restart', 'slapd-post-restart', 'slapd-pre-reload', 'slapd-post-reload', 'slapd-post-end']) }}
