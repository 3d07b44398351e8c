{#- virtualhost(domain, doc_root, …) makes the states of a site: the arguments are those of makina-states' macro of this name. #}
{%- macro virtualhost(domain, doc_root='/var/www/html') %}
{%- set data = salt['mc_nginx.vhost_settings'](domain, doc_root, **kwargs) %}
{%- set vhost = salt['mc_utils.json_dump'](data) %}
{%- set id = 'makina-nginx-virtualhost-' ~ data.small_name %}
{%- if data.with_include_sls_statement or data.includes %}
include:
  - makina-states.services.http.nginx
{%- for i in data.includes %}
  - {{ i }}
{%- endfor %}
{%- endif %}
{%- for part, name, source in [('-top', data.vhost_top_file, data.vh_top_source), ('-content', data.vhost_content_file, data.vh_content_source), ('', data.vhost_available_file, data.vh_template_source)] %}
{{ id }}{{ part }}:
  file.managed:
    - name: {{ name }}
    - source: {{ source }}
    - template: jinja
    - mode: 644
    - makedirs: true
    - defaults:
        data: |
              {{ vhost }}
    - watch:
      - mc_proxy: nginx-pre-conf-hook
    - watch_in:
      - mc_proxy: nginx-post-conf-hook
{%- endfor %}
{%- if data.ssl %}
{%- if data.ssl_cert %}
{{ id }}-certificate:
  file.managed:
    - name: {{ data.ssl_bundle_path }}
    - mode: 644
    - makedirs: true
    - contents: {{ (data.ssl_bundle or data.ssl_cert) | json }}
    - watch:
      - mc_proxy: nginx-pre-conf-hook
    - watch_in:
      - mc_proxy: nginx-post-conf-hook
{{ id }}-key:
  file.managed:
    - name: {{ data.ssl_key_path }}
    - mode: 600
    - makedirs: true
    - show_changes: false
    - contents: {{ data.ssl_key | json }}
    - watch:
      - mc_proxy: nginx-pre-conf-hook
    - watch_in:
      - mc_proxy: nginx-post-conf-hook
{%- else %}
{{ id }}-certificate:
  cmd.run:
    - name: >-
        openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=$DOMAIN" -addext "subjectAltName=DNS:$DOMAIN"
        -keyout "$KEY.new" -out "$CERT.new" && mv "$KEY.new" "$KEY" && mv "$CERT.new" "$CERT"
    - umask: '077'
    - env:
      - DOMAIN: {{ data.ssl_common_name | json }}
      - KEY: {{ data.ssl_key_path | json }}
      - CERT: {{ data.ssl_bundle_path | json }}
    - creates: {{ data.ssl_bundle_path }}
    - require:
      - mc_proxy: nginx-pre-conf-hook
    - watch_in:
      - mc_proxy: nginx-post-conf-hook
{%- endif %}
{%- endif %}
{{ toggle_vhost(data.vhost_basename, data.active) }}
{%- for wanted, hook in [(data.force_reload, 'nginx-pre-restart-hook'), (data.force_restart, 'nginx-pre-hardrestart-hook')] if wanted %}
{{ id }}-{{ hook }}:
  cmd.run:
    - name: 'true'
    - require:
      - mc_proxy: nginx-post-conf-hook
    - watch_in:
      - mc_proxy: {{ hook }}
{%- endfor %}
{%- endmacro %}

{%- macro toggle_vhost(site, active=True) %}
{%- set nginx = salt['mc_nginx.settings']() %}
makina-nginx-virtualhost-{{ site }}-status:
{%- if active %}
  file.symlink:
    - name: {{ nginx.basedir }}/conf.d/z_vhost_{{ site }}.conf
    - target: {{ nginx.basedir }}/sites-available/{{ site }}.conf
{%- else %}
  file.absent:
    - name: {{ nginx.basedir }}/conf.d/z_vhost_{{ site }}.conf
{%- endif %}
    - watch:
      - mc_proxy: nginx-pre-conf-hook
    - watch_in:
      - mc_proxy: nginx-post-conf-hook
{%- endmacro %}
