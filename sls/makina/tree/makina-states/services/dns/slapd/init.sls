{#- OpenLDAP of the distribution, with one database, whose suffix its installation sets: a server that is there with another one is an error. #}
{%- set settings = salt['mc_slapd.settings']() %}
{%- set labels = [] %}
{%- for part in settings.dn.split(',') %}
{%- set label = part.strip() %}
{%- if not label.lower().startswith('dc=') %}
{{ raise("makina-states.services.dns.slapd.dn: " ~ settings.dn ~ ": each part must be a dc, as the installation makes the database of a domain") }}
{%- endif %}
{%- do labels.append(label[3:]) %}
{%- endfor %}
{%- set ldap = '-Q -Y EXTERNAL -H ldapi:///' %}
{%- set applied = '/etc/ldap/corpus.applied.ldif' %}
include:
  - makina-states.services.dns.slapd.hooks

slapd-domain:
  cmd.run:
    - name: debconf-set-selections
    - stdin: |
        slapd slapd/domain string {{ labels | join('.') }}
        slapd shared/organization string {{ settings.organization or labels | first }}
    - unless: dpkg-query -W -f '${Status}' slapd 2>/dev/null | grep -q ' installed'
    - watch:
      - mc_proxy: slapd-pre-install
    - watch_in:
      - mc_proxy: slapd-post-install

slapd-packages:
  pkg.installed:
    - pkgs: {{ settings.pkgs | json }}
    - watch:
      - mc_proxy: slapd-pre-install
    - require:
      - cmd: slapd-domain
    - watch_in:
      - mc_proxy: slapd-post-install

slapd-addresses:
  file.replace:
    - name: /etc/default/slapd
    - pattern: ^SLAPD_SERVICES=.*$
    - repl: SLAPD_SERVICES="{{ settings.SLAPD_SERVICES }}"
    - append_if_not_found: true
    - require:
      - mc_proxy: slapd-post-install
    - watch_in:
      - mc_proxy: slapd-pre-restart

slapd-started:
  service.running:
    - name: {{ settings.service_name }}
    - require:
      - mc_proxy: slapd-post-install
    - require_in:
      - mc_proxy: slapd-pre-conf

slapd-suffix:
  cmd.run:
    - name: |
        echo "slapd serves other suffixes than {{ settings.dn }}; dpkg-reconfigure slapd makes another database" >&2
        exit 1
    - unless: ldapsearch {{ ldap }} -LLL -b 'olcDatabase={1}mdb,cn=config' -s base '(olcSuffix={{ settings.dn }})' dn | grep -q ^dn
    - require:
      - mc_proxy: slapd-pre-conf
    - require_in:
      - mc_proxy: slapd-post-conf
{%- for schema in settings.schemas %}

slapd-schema-{{ schema }}:
  cmd.run:
    - name: ldapadd {{ ldap }} -f '{{ schema }}'
    - unless: ldapsearch {{ ldap }} -LLL -b cn=schema,cn=config -s one dn | grep -qi '^dn. cn={[0-9]*}{{ schema.split('/') | last | replace('.ldif', '') }},'
    - require:
      - cmd: slapd-suffix
    - watch_in:
      - mc_proxy: slapd-post-conf
    - require_in:
      - cmd: slapd-settings-apply
{%- endfor %}

slapd-settings:
  file.managed:
    - name: /etc/ldap/corpus.ldif
    - mode: 600
    - show_changes: false
    - contents: |
        # Written by corpus-git; what is changed here is lost.
        dn: cn=config
        changetype: modify
        replace: olcLogLevel
        olcLogLevel: {{ settings.loglevel }}

        dn: olcDatabase={0}config,cn=config
        changetype: modify
        replace: olcRootDN
        olcRootDN: {{ settings.config_rootdn }}
        -
        replace: olcRootPW
        olcRootPW: {CRYPT}{{ salt['mc_utils.unix_crypt'](settings.config_pw) }}

        dn: olcDatabase={1}mdb,cn=config
        changetype: modify
        replace: olcRootDN
        olcRootDN: {{ settings.root_dn }}
        -
        replace: olcRootPW
        olcRootPW: {CRYPT}{{ salt['mc_utils.unix_crypt'](settings.root_pw) }}
{%- if settings.acls %}
        -
        replace: olcAccess
{%- for acl in settings.acls %}
        olcAccess: {{ acl }}
{%- endfor %}
{%- endif %}
{%- if settings.syncrepl.provider %}
        -
        replace: olcSyncrepl
        olcSyncrepl: {{ settings.s_syncrepl }}
{%- endif %}
    - require:
      - mc_proxy: slapd-pre-conf
    - watch_in:
      - mc_proxy: slapd-post-conf

slapd-settings-apply:
  cmd.run:
    - name: ldapmodify {{ ldap }} -f /etc/ldap/corpus.ldif && install -m 600 /etc/ldap/corpus.ldif {{ applied }}
    - unless: cmp -s /etc/ldap/corpus.ldif {{ applied }}
    - require:
      - file: slapd-settings
      - cmd: slapd-suffix
    - watch_in:
      - mc_proxy: slapd-post-conf

slapd-configuration-check:
  cmd.run:
    - name: slaptest -Q -u -F /etc/ldap/slapd.d
    - onchanges:
      - mc_proxy: slapd-check-conf
    - require_in:
      - mc_proxy: slapd-pre-restart

slapd-service:
  service.running:
    - name: {{ settings.service_name }}
    - enable: true
    - watch:
      - mc_proxy: slapd-pre-restart
    - watch_in:
      - mc_proxy: slapd-post-restart
