{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['mongodb-pre-install', 'mongodb-post-install', 'mongodb-pre-conf', 'mongodb-post-conf', 'mongodb-pre-hardrestart', 'mongodb-post-hardrestart', 'mongodb-pre-restart', 'mongodb-post-restart', 'mongodb-db-create-hook', 'mongodb-db-create-user-hook', 'mongodb-db-grant-hook']) }}
