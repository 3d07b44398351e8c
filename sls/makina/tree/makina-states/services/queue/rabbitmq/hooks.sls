{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['rabbitmq-pre-install', 'rabbitmq-post-install', 'rabbitmq-pre-conf', 'rabbitmq-post-conf', 'rabbitmq-pre-hardrestart', 'rabbitmq-post-hardrestart', 'rabbitmq-pre-restart', 'rabbitmq-post-restart', 'rabbitmq-db-create-hook', 'rabbitmq-db-create-user-hook', 'rabbitmq-db-grant-hook']) }}
