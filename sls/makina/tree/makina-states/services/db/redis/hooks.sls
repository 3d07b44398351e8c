{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['redis-pre-install', 'redis-post-install', 'redis-pre-conf', 'redis-post-conf', 'redis-pre-hardrestart', 'redis-post-hardrestart', 'redis-pre-restart', 'redis-post-restart']) }}
