{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['groups-pre-hook', 'groups-ready-hook', 'users-pre-hook', 'users-ready-hook']) }}
