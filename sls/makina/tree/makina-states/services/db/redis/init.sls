{#- Redis of the distribution. #}
include:
  - makina-states.services.db.redis.hooks

redis-packages:
  pkg.installed:
    - pkgs: [redis-server]
    - watch:
      - mc_proxy: redis-pre-install
    - watch_in:
      - mc_proxy: redis-post-install

redis-service:
  service.running:
    - name: redis-server
    - enable: true
    - watch:
      - mc_proxy: redis-pre-restart
    - watch_in:
      - mc_proxy: redis-post-restart
