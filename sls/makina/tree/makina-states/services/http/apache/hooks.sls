{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['makina-apache-pre-inst', 'makina-apache-post-pkgs', 'makina-apache-post-inst', 'makina-apache-pre-conf', 'makina-apache-vhostconf', 'makina-apache-post-conf', 'makina-apache-check', 'makina-apache-pre-restart', 'makina-apache-post-restart', 'makina-apache-pre-reload', 'makina-apache-post-reload']) }}
