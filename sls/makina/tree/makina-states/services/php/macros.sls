{#- fpm_pool(domain, doc_root, …) makes a pool of PHP-FPM and its folders; the arguments are keys of mc_php.fpmpool_settings. #}
{%- set phpSettings = salt['mc_php.settings']() %}
{%- macro fpm_pool(domain, doc_root) %}
{%- set data = salt['mc_php.fpmpool_settings'](domain, doc_root, **kwargs) %}
{%- set id = 'makina-php-pool-' ~ data.pool_name | replace('*', 'star') %}
{{ id }}-directories:
  file.directory:
    - names: {{ [data.private_dir, data.sessions_dir, data.tmp_dir, data.log_dir] | unique | list | json }}
    - user: {{ data.fpm_user | json }}
    - group: {{ data.fpm_group | json }}
    - mode: "2775"
    - makedirs: true
    - watch:
      - mc_proxy: makina-php-post-inst
    - require_in:
      - mc_proxy: makina-php-pre-restart
{{ id }}-socket-directory:
  file.directory:
    - name: {{ data.socket_folder | json }}
    - makedirs: true
    - unless: test -d {{ data.socket_folder | json }}
    - require:
      - mc_proxy: makina-php-post-inst
    - require_in:
      - mc_proxy: makina-php-pre-restart
{{ id }}:
  file.managed:
    - name: {{ data.etcdir }}/fpm/pool.d/{{ data.pool_name }}.conf
    - source: {{ data.pool_template_source }}
    - template: jinja
    - mode: 644
    - makedirs: true
    - defaults:
        data: |
              {{ salt['mc_utils.json_dump'](data) }}
    - watch:
      - mc_proxy: makina-php-pre-conf
    - watch_in:
      - mc_proxy: makina-php-post-conf
{{ id }}-logrotate:
  file.managed:
    - name: /etc/logrotate.d/fpm.{{ data.pool_name }}.conf
    - source: salt://makina-states/files/etc/logrotate.d/fpmpool.conf
    - template: jinja
    - mode: 644
    - defaults:
        data: |
              {{ salt['mc_utils.json_dump'](data) }}
    - require:
      - mc_proxy: makina-php-post-inst
{%- endmacro %}

{#- toggle_ext(name, active) turns a module on or off that is installed. #}
{%- macro toggle_ext(ext, activation_status=True) %}
makina-php-{{ ext }}-{{ 'install' if activation_status else 'disable' }}:
  cmd.run:
    - name: {{ 'phpenmod' if activation_status else 'phpdismod' }} -v {{ phpSettings.php_ver }} {{ ext }}
{%- if activation_status %}
    - unless: phpquery -q -v {{ phpSettings.php_ver }} -s fpm -m {{ ext }}
{%- else %}
    - onlyif: phpquery -q -v {{ phpSettings.php_ver }} -s fpm -m {{ ext }}
{%- endif %}
    - require:
      - mc_proxy: makina-php-pre-conf
    - watch_in:
      - mc_proxy: makina-php-post-conf
{%- endmacro %}

{#- composer(directory, user, …) installs what composer.lock names, with the distribution's Composer. #}
{%- macro composer(directory, user='root', options='--no-dev --no-interaction --no-progress') %}
makina-php-composer:
  pkg.installed:
    - pkgs: [composer, unzip]
makina-php-composer-{{ directory }}:
  cmd.run:
    - name: composer install {{ options }}
    - cwd: {{ directory | json }}
    - runas: {{ user }}
    - require:
      - pkg: makina-php-composer
{%- endmacro %}
