{#- RabbitMQ of the distribution. #}
{%- import "makina-states/services/queue/rabbitmq/macros.sls" as macros with context %}
{%- set rabbitmq_vhost = macros.rabbitmq_vhost %}
{%- set rabbitmq_user = macros.rabbitmq_user %}
{%- set rabbitmq = salt['mc_rabbitmq.settings']() %}
include:
  - makina-states.services.queue.rabbitmq.hooks

rabbitmq-packages:
  pkg.installed:
    - pkgs: [rabbitmq-server]
    - watch:
      - mc_proxy: rabbitmq-pre-install
    - watch_in:
      - mc_proxy: rabbitmq-post-install

rabbitmq-plugins:
  cmd.run:
    - name: rabbitmq-plugins enable {{ rabbitmq.rabbitmq.plugins | join(' ') }}
    - unless: 'for p in {{ rabbitmq.rabbitmq.plugins | join(' ') }}; do rabbitmq-plugins is_enabled -q "$p" >/dev/null || exit 1; done'
    - watch:
      - mc_proxy: rabbitmq-pre-conf
    - watch_in:
      - mc_proxy: rabbitmq-post-conf

rabbitmq-service:
  service.running:
    - name: rabbitmq-server
    - enable: true
    - watch:
      - mc_proxy: rabbitmq-pre-restart
    - watch_in:
      - mc_proxy: rabbitmq-post-restart
