{#- memcached of the distribution. #}
include:
  - makina-states.services.cache.memcached.hooks

memcached-packages:
  pkg.installed:
    - pkgs: [memcached]
    - watch:
      - mc_proxy: memcached-pre-install
    - watch_in:
      - mc_proxy: memcached-post-install

memcached-service:
  service.running:
    - name: memcached
    - enable: true
    - watch:
      - mc_proxy: memcached-pre-restart
    - watch_in:
      - mc_proxy: memcached-post-restart
