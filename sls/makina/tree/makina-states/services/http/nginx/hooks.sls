{#- The names are those of makina-states, which projects order themselves by: each hook is changed when the one before it is. #}
nginx-pre-install-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: nginx-post-install-hook

nginx-post-install-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: nginx-pre-conf-hook

nginx-pre-conf-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: nginx-post-conf-hook

nginx-post-conf-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: nginx-check-hook

nginx-check-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: nginx-pre-restart-hook
    - require_in:
      - mc_proxy: nginx-pre-hardrestart-hook

nginx-pre-hardrestart-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: nginx-post-hardrestart-hook

nginx-post-hardrestart-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: nginx-pre-restart-hook

nginx-pre-restart-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: nginx-post-restart-hook

nginx-post-restart-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: nginx-pre-disable

nginx-pre-disable:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: nginx-post-disable

nginx-post-disable:
  mc_proxy.hook: []
