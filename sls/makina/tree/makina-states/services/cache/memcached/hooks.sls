{#- The names are those of makina-states, which projects order themselves by: each hook is changed when the one before it is. #}
memcached-pre-install:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: memcached-post-install

memcached-post-install:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: memcached-pre-conf

memcached-pre-conf:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: memcached-post-conf

memcached-post-conf:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: memcached-pre-restart

memcached-pre-restart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: memcached-post-restart

memcached-post-restart:
  mc_proxy.hook: []
