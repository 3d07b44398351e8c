{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['ubuntugis-pre-install-hook', 'ubuntugis-post-install-hook', 'ubuntugis-pre-conf-hook', 'ubuntugis-post-conf-hook', 'ubuntugis-pre-hardrestart-hook', 'ubuntugis-post-hardrestart-hook', 'ubuntugis-pre-restart-hook', 'ubuntugis-post-restart-hook']) }}
