{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['cron-preinstall', 'cron-postinstall', 'cron-preconf', 'cron-postconf', 'cron-prerestart', 'cron-postrestart']) }}
{{ hooks.chain(['cron-prehardrestart', 'cron-posthardrestart']) }}
