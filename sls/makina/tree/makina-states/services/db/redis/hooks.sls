{#- The names are those of makina-states, which projects order themselves by: each hook is changed when the one before it is. #}
redis-pre-install:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: redis-post-install

redis-post-install:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: redis-pre-conf

redis-pre-conf:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: redis-post-conf

redis-post-conf:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: redis-pre-hardrestart

redis-pre-hardrestart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: redis-post-hardrestart

redis-post-hardrestart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: redis-pre-restart

redis-pre-restart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: redis-post-restart

redis-post-restart:
  mc_proxy.hook: []
