{#- The password of mc_redis.settings, and options of the pillar (makina-states.services.db.redis.redis), in a file that redis.conf includes. #}
{%- set settings = salt['mc_redis.settings']() %}
include:
  - makina-states.services.db.redis

redis-configuration:
  file.managed:
    - name: /etc/redis/corpus.conf
    - user: redis
    - group: redis
    - mode: 640
    - show_changes: false
    - contents: |
        # Written by corpus-git; what is changed here is lost.
{%- if settings.password %}
        requirepass {{ settings.password }}
        masterauth {{ settings.password }}
{%- endif %}
{%- for key, value in settings.redis.items() %}
{%- if key not in ['requirepass', 'masterauth'] %}
        {{ key }} {{ value }}
{%- endif %}
{%- endfor %}
    - require:
      - mc_proxy: redis-pre-conf
    - watch_in:
      - mc_proxy: redis-post-conf

redis-configuration-included:
  file.append:
    - name: /etc/redis/redis.conf
    - text: include /etc/redis/corpus.conf
    - require:
      - file: redis-configuration
    - watch_in:
      - mc_proxy: redis-post-conf
