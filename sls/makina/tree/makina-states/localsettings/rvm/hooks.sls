{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['rvm-install-pre', 'rvm-install-post', 'rvm-setup-pre', 'rvm-setup-post', 'rvm-setup-act-pre', 'rvm-setup-act-post', 'rvm-last']) }}
