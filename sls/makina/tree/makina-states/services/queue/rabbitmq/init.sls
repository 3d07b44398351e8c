{#- RabbitMQ of the distribution. #}
include:
  - makina-states.services.queue.rabbitmq.hooks

rabbitmq-packages:
  pkg.installed:
    - pkgs: [rabbitmq-server]
    - watch:
      - mc_proxy: rabbitmq-pre-install
    - watch_in:
      - mc_proxy: rabbitmq-post-install

rabbitmq-service:
  service.running:
    - name: rabbitmq-server
    - enable: true
    - watch:
      - mc_proxy: rabbitmq-pre-restart
    - watch_in:
      - mc_proxy: rabbitmq-post-restart
