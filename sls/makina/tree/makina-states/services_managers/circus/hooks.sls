{#- The names are those of makina-states, which projects order themselves by: each hook is changed when the one before it is. #}
circus-pre-install:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-post-install

circus-post-install:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-pre-conf2

circus-pre-conf2:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-pre-conf

circus-pre-conf:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-post-conf

circus-post-conf:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-pre-hard-restart

circus-pre-hard-restart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-post-hard-restart

circus-post-hard-restart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-pre-restart

circus-pre-restart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-post-restart

circus-post-restart:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-pre-watchers

circus-pre-watchers:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-pre-conf-watchers

circus-pre-conf-watchers:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-post-conf-watchers

circus-post-conf-watchers:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-post-watchers

circus-post-watchers:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-post-end

circus-post-end:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-pre-disable

circus-pre-disable:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: circus-post-disable

circus-post-disable:
  mc_proxy.hook: []

{# One reload for the units of all watchers that changed. #}
circus-units-reload:
  cmd.wait:
    - name: systemctl daemon-reload
    - watch:
      - mc_proxy: circus-post-conf-watchers
    - require_in:
      - mc_proxy: circus-post-watchers
