{#- mysql_db and mysql_user run the client as root, whom Debian's MariaDB knows by the socket; passwords go to its standard input. #}
{%- macro mysql_base() %}{% endmacro %}
{%- macro _name(text) %}`{{ text | replace('`', '``') }}`{% endmacro %}
{%- macro _text(text) %}'{{ text | replace('\\', '\\\\') | replace("'", "''") }}'{% endmacro %}

{%- macro mysql_db(db, user=None, host='localhost', password=None, user_creation=True, character_set='utf8mb4', collate='utf8mb4_unicode_ci', state_uid=None) %}
makina-mysql-db-{{ state_uid or db | replace('.', '_') }}:
  cmd.run:
    - name: mariadb --batch
    - stdin: |
        CREATE DATABASE IF NOT EXISTS {{ _name(db) }} CHARACTER SET {{ character_set }} COLLATE {{ collate }};
    - require:
      - mc_proxy: mysql-post-restart-hook
    - require_in:
      - mc_proxy: mysql-db-create-hook
{%- if user_creation %}
{{ mysql_user(user or db, password, host=host, databases=[db], state_uid=state_uid) }}
{%- endif %}
{%- endmacro %}

{%- macro mysql_user(user, password, host='localhost', databases=None, grants='ALL PRIVILEGES', state_uid=None) %}
{%- set password = password or salt['mc_utils.generate_stored_password']('mysql_user_' ~ user) %}
{%- if '\n' in password %}{{ raise('mysql_user: the password of ' ~ user ~ ' has a line break') }}{% endif %}
makina-mysql-user-{{ state_uid or user }}-{{ host }}:
  cmd.run:
    - name: mariadb --batch
    - stdin: |
        CREATE USER IF NOT EXISTS {{ _text(user) }}@{{ _text(host) }} IDENTIFIED BY {{ _text(password) }};
        ALTER USER {{ _text(user) }}@{{ _text(host) }} IDENTIFIED BY {{ _text(password) }};
{%- for db in databases or [] %}
        GRANT {{ grants }} ON {{ _name(db) }}.* TO {{ _text(user) }}@{{ _text(host) }};
{%- endfor %}
    - require:
      - mc_proxy: mysql-db-create-hook
    - require_in:
      - mc_proxy: mysql-db-create-user-hook
{%- endmacro %}
