{#- The names are those of makina-states, which projects order themselves by: each hook is changed when the one before it is. #}
ftpd-pre-installation-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: ftpd-post-installation-hook

ftpd-post-installation-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: ftpd-pre-configuration-hook

ftpd-pre-configuration-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: ftpd-post-configuration-hook

ftpd-post-configuration-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: ftpd-pre-restart-hook

ftpd-pre-restart-hook:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: ftpd-post-restart-hook

ftpd-post-restart-hook:
  mc_proxy.hook: []
