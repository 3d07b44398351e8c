{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['mysql-pre-install-hook', 'mysql-post-install-hook', 'mysql-setup-access-pre', 'mysql-setup-access', 'mysql-pre-conf-hook', 'mysql-post-conf-hook', 'mysql-pre-restart-hook', 'mysql-post-restart-hook', 'mysql-db-create-hook', 'mysql-db-create-user-hook', 'mysql-db-grant-hook']) }}
