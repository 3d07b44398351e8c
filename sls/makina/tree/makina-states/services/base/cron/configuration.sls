{%- import "makina-states/_macros/h.jinja" as h with context %}
include:
  - makina-states.services.base.cron.hooks
{%- macro ordered() %}
    - watch:
      - mc_proxy: cron-preconf
    - watch_in:
      - mc_proxy: cron-postconf
{%- endmacro %}
{#- Files of the pillar's  makina-states.services.base.cron: extra_confs , with mode 644: cron reads no file that others than root may write. #}
{{ h.deliver_config_files(salt['mc_cron.settings']().extra_confs, after_macro=ordered, prefix='cron-', mode=644) }}
