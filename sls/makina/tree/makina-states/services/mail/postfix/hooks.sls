{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['postfix-preinstall', 'postfix-postinstall', 'postfix-preconf', 'postfix-postconf', 'postfix-prehardrestart', 'postfix-posthardrestart', 'postfix-prerestart', 'postfix-postrestart']) }}
