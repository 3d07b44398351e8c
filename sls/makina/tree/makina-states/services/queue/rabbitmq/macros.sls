{#- rabbitmq_vhost and rabbitmq_user call rabbitmqctl; passwords go to its standard input. #}
{%- macro rabbitmq_vhost(db, user=None, password=None, user_creation=True, state_uid=None) %}
makina-rabbitmq-db-{{ state_uid or db | replace('.', '_') | replace(' ', '_') }}:
  cmd.run:
    - name: rabbitmqctl -q add_vhost "$VHOST"
    - unless: rabbitmqctl -q --no-table-headers list_vhosts name | grep -qxF -- {{ db | json }}
    - env:
      - VHOST: {{ db | json }}
    - require:
      - mc_proxy: rabbitmq-post-restart
    - require_in:
      - mc_proxy: rabbitmq-db-create-hook
{%- if user_creation %}
{{ rabbitmq_user(user or db, password, perms=[{db: ['.*', '.*', '.*']}], state_uid=state_uid) }}
{%- endif %}
{%- endmacro %}

{%- macro rabbitmq_user(user, password, perms=None, state_uid=None, tags=None) %}
{%- set password = password or salt['mc_utils.generate_stored_password']('rabbitmq_user_' ~ user) %}
{%- if '\n' in password %}{{ raise('rabbitmq_user: the password of ' ~ user ~ ' has a line break') }}{% endif %}
{%- set id = 'makina-rabbitmq-create-' ~ user ~ '-' ~ (state_uid or user | replace('.', '_') | replace(' ', '_')) %}
{{ id }}:
  cmd.run:
    - name: |
        IFS= read -r password
        if printf '%s\n' "$password" | rabbitmqctl -q authenticate_user "$RABBIT_USER" >/dev/null 2>&1; then echo 'changed=no'; exit 0; fi
        if rabbitmqctl -q --no-table-headers list_users | cut -f1 | grep -qxF -- "$RABBIT_USER"; then
          printf '%s\n' "$password" | rabbitmqctl -q change_password "$RABBIT_USER" >/dev/null || exit 1
        else
          printf '%s\n' "$password" | rabbitmqctl -q add_user "$RABBIT_USER" >/dev/null || exit 1
        fi
        echo 'changed=yes'
    - stdin: {{ (password ~ '\n') | json }}
    - stateful: true
    - env:
      - RABBIT_USER: {{ user | json }}
    - require:
      - mc_proxy: rabbitmq-db-create-hook
    - require_in:
      - mc_proxy: rabbitmq-db-create-user-hook
{{ id }}-rights:
  cmd.run:
    - name: |
        set -e
{%- for perm in perms or [{'/': ['.*', '.*', '.*']}] %}
{%- for vhost, rights in perm.items() %}
        rabbitmqctl -q set_permissions -p {{ vhost | json }} "$RABBIT_USER" {{ rights[0] | json }} {{ rights[1] | json }} {{ rights[2] | json }}
{%- endfor %}
{%- endfor %}
{%- if tags %}
        rabbitmqctl -q set_user_tags "$RABBIT_USER" {{ tags if tags is string else tags | join(' ') }}
{%- endif %}
    - env:
      - RABBIT_USER: {{ user | json }}
    - require:
      - mc_proxy: rabbitmq-db-create-user-hook
    - require_in:
      - mc_proxy: rabbitmq-db-grant-hook
{%- endmacro %}
