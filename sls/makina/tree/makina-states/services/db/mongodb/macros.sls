{#- mongodb_db and mongodb_user run mongosh; names and passwords go to its standard input. #}
{%- set mongodb = salt['mc_mongodb.settings']() %}
{%- macro mongodb_db(db, user=None, password=None, user_creation=True, state_uid=None) %}
{%- if user_creation %}
{{ mongodb_user(user or db, password, databases=[db], state_uid=state_uid or db | replace('.', '_') | replace(' ', '_')) }}
{%- endif %}
{%- endmacro %}

{%- macro mongodb_user(user, password, databases=None, state_uid=None) %}
{%- for db in databases or ['admin'] %}
{%- set password = password or salt['mc_utils.generate_stored_password']('mongodb_user_' ~ db ~ '_' ~ user) %}
makina-mongodb-{{ db }}-create-{{ user }}-{{ state_uid or user | replace('.', '_') | replace(' ', '_') }}:
  cmd.run:
    - name: mongosh --quiet --norc --host {{ mongodb.mongod.bind_ip }} --port {{ mongodb.mongod.port }} --file /dev/stdin
    - stdin: |
        const admin = db.getSiblingDB("admin");
{%- if mongodb.password %}
        admin.auth({{ mongodb.admin | json }}, {{ mongodb.password | json }});
{%- endif %}
        const target = db.getSiblingDB({{ db | json }});
        const roles = [{role: "dbAdmin", db: {{ db | json }}}, {role: "readWrite", db: {{ db | json }}}];
        if (target.getUser({{ user | json }})) {
          target.updateUser({{ user | json }}, {pwd: {{ password | json }}, roles: roles});
        } else {
          target.createUser({user: {{ user | json }}, pwd: {{ password | json }}, roles: roles});
        }
    - require:
      - mc_proxy: mongodb-post-restart
    - require_in:
      - mc_proxy: mongodb-db-create-hook
{%- endfor %}
{%- endmacro %}
