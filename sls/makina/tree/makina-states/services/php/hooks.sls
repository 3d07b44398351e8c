{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{#- The names are those of makina-states, which projects order themselves by. #}
include:
  - makina-states.services.http.apache.hooks
{{ hooks.chain(['makina-php-pre-repo', 'makina-php-pre-inst', 'makina-php-post-inst', 'makina-php-pre-conf', 'makina-php-post-conf', 'makina-php-pre-restart',
    'makina-php-post-restart']) }}
makina-apache-php-pre-inst:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: makina-php-pre-inst

makina-apache-php-post-inst:
  mc_proxy.hook:
    - watch:
      - mc_proxy: makina-php-post-inst
    - watch_in:
      - mc_proxy: makina-apache-php-pre-conf

makina-apache-php-pre-conf:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: makina-php-pre-conf
      - mc_proxy: makina-apache-php-post-conf

makina-apache-php-post-conf:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: makina-php-post-conf
      - mc_proxy: makina-apache-php-pre-restart

makina-apache-php-pre-restart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: makina-php-pre-restart
      - mc_proxy: makina-apache-pre-restart

makina-apache-php-post-restart:
  mc_proxy.hook:
    - watch:
      - mc_proxy: makina-php-post-restart
