{#- The names are those of makina-states, which projects order themselves by: each hook is changed when the one before it is. #}
rabbitmq-pre-install:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: rabbitmq-post-install

rabbitmq-post-install:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: rabbitmq-pre-conf

rabbitmq-pre-conf:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: rabbitmq-post-conf

rabbitmq-post-conf:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: rabbitmq-pre-hardrestart

rabbitmq-pre-hardrestart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: rabbitmq-post-hardrestart

rabbitmq-post-hardrestart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: rabbitmq-pre-restart

rabbitmq-pre-restart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: rabbitmq-post-restart

rabbitmq-post-restart:
  mc_proxy.hook: []
