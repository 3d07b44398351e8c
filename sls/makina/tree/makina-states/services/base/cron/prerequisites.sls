include:
  - makina-states.services.base.cron.hooks

cron-pkgs:
  pkg.installed:
    - pkgs: {{ salt['mc_cron.settings']().packages | json }}
    - watch:
      - mc_proxy: cron-preinstall
    - watch_in:
      - mc_proxy: cron-postinstall
