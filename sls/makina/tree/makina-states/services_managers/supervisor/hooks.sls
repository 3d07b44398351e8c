{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
{{ hooks.chain(['supervisor-pre-install', 'supervisor-post-install', 'supervisor-pre-conf', 'supervisor-post-conf', 'supervisor-pre-restart', 'supervisor-post-restart',
                'supervisor-post-end', 'supervisor-pre-disable', 'supervisor-post-disable']) }}
{#- Nothing runs between these two: units are restarted one by one. #}
{{ hooks.chain(['supervisor-pre-hard-restart', 'supervisor-post-hard-restart']) }}

{# One reload for the units of all programs that changed. #}
supervisor-units-reload:
  cmd.wait:
    - name: systemctl daemon-reload
    - watch:
      - mc_proxy: supervisor-post-conf
    - require_in:
      - mc_proxy: supervisor-pre-restart
