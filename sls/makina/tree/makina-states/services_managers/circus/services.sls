include:
  - makina-states.services_managers.circus.hooks

{# One reload for the units of all watchers that changed. #}
circus-units-reload:
  cmd.wait:
    - name: systemctl daemon-reload
    - watch:
      - mc_proxy: circus-post-conf-watchers
    - require_in:
      - mc_proxy: circus-post-watchers
