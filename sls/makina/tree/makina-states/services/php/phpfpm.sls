{#- PHP-FPM of the distribution; its configuration is checked before it is restarted. #}
{%- set php = salt['mc_php.settings']() %}
include:
  - makina-states.services.php.hooks

makina-php-pkgs:
  pkg.installed:
    - pkgs: [{{ php.packages.php_fpm }}, {{ php.packages.cli }}]
    - watch:
      - mc_proxy: makina-php-pre-inst
    - watch_in:
      - mc_proxy: makina-php-post-inst

makina-php-logdir:
  file.directory:
    - name: {{ php.logdir }}
    - mode: 755
    - makedirs: true
    - watch:
      - mc_proxy: makina-php-pre-conf
    - watch_in:
      - mc_proxy: makina-php-post-conf

makina-php-configuration-check:
  cmd.run:
    - name: php-fpm{{ php.php_ver }} -t
    - onchanges:
      - mc_proxy: makina-php-pre-restart

makina-php-service:
  service.running:
    - name: {{ php.service }}
    - enable: true
    - watch:
      - mc_proxy: makina-php-pre-restart
    - require:
      - cmd: makina-php-configuration-check
    - watch_in:
      - mc_proxy: makina-php-post-restart
