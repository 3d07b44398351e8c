include:
  - makina-states.services.base.cron.hooks

makina-cron-service:
  service.running:
    - name: cron
    - enable: true
    - watch:
      - mc_proxy: cron-prerestart
    - watch_in:
      - mc_proxy: cron-postrestart

makina-cron-restart-service:
  service.running:
    - name: cron
    - enable: true
    - watch:
      - mc_proxy: cron-prehardrestart
    - watch_in:
      - mc_proxy: cron-posthardrestart
