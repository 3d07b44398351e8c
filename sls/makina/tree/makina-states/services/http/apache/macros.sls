{#- virtualhost(domain, doc_root, …) makes the states of a site: the arguments are keys of mc_apache.vhost_settings. #}
{%- macro virtualhost(domain, doc_root) %}
{%- set data = salt['mc_apache.vhost_settings'](domain, doc_root, **kwargs) %}
{%- set id = data.project ~ '-makina-apache-virtualhost' %}
{%- for part, name, source in [('-top', data.ivhosttop, data.vh_top_source), ('-content', data.ivhost, data.vh_content_source), ('', data.avhost, data.vh_template_source)] %}
{{ id }}{{ part }}:
  file.managed:
    - name: {{ name }}.conf
    - source: {{ source }}
    - template: jinja
    - mode: 644
    - makedirs: true
    - defaults:
        data: |
              {{ salt['mc_utils.json_dump'](data) }}
    - watch:
      - mc_proxy: makina-apache-vhostconf
    - watch_in:
      - mc_proxy: makina-apache-post-conf
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
      - mc_proxy: makina-apache-vhostconf
    - watch_in:
      - mc_proxy: makina-apache-post-conf
{{ id }}-key:
  file.managed:
    - name: {{ data.ssl_key_path }}
    - mode: 600
    - makedirs: true
    - show_changes: false
    - contents: {{ data.ssl_key | json }}
    - watch:
      - mc_proxy: makina-apache-vhostconf
    - watch_in:
      - mc_proxy: makina-apache-post-conf
{%- else %}
{{ id }}-certificate:
  cmd.run:
    - name: >-
        openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=$DOMAIN" -addext "subjectAltName=DNS:$DOMAIN"
        -keyout "$KEY.new" -out "$CERT.new" && mv "$KEY.new" "$KEY" && mv "$CERT.new" "$CERT"
    - umask: '077'
    - env:
      - DOMAIN: {{ data.domain | json }}
      - KEY: {{ data.ssl_key_path | json }}
      - CERT: {{ data.ssl_bundle_path | json }}
    - creates: {{ data.ssl_bundle_path | json }}
    - watch:
      - mc_proxy: makina-apache-vhostconf
    - watch_in:
      - mc_proxy: makina-apache-post-conf
{%- endif %}
{%- endif %}
{{ id }}-status:
{%- if data.active %}
  file.symlink:
    - name: {{ data.evhost }}.conf
    - target: {{ data.avhost }}.conf
    - makedirs: true
{%- else %}
  file.absent:
    - name: {{ data.evhost }}.conf
{%- endif %}
    - watch:
      - file: {{ id }}
    - watch_in:
      - mc_proxy: makina-apache-post-conf
{%- endmacro %}

{%- macro minimal_index(doc_root, domain='', mode='') %}
{{ doc_root }}-minimal-index:
  file.managed:
    - name: {{ doc_root }}/index.html
    - contents: <html><body>{{ domain }} {{ mode }}</body></html>
    - makedirs: true
    - replace: false
    - watch:
      - mc_proxy: makina-apache-pre-conf
    - watch_in:
      - mc_proxy: makina-apache-post-conf
{%- endmacro %}
